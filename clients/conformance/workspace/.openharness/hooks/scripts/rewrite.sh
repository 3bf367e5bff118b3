# Puts something else in the place of what hooks may change.
case $(cat) in
*_context_*) target=context ;;
*'"before_model_call"'*) target=model_request ;;
*'"after_model_call"'*) target=model_response ;;
*) target=tool_output ;;
esac
echo '{"hookSpecificOutput": {"patch": {"'$target'": {"rewritten": "'$target'"}}}}'
