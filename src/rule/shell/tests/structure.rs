//! Lists, pipes, compound commands, functions, redirections and here-documents.

use super::check;

#[test]
fn lists_and_pipes_are_taken_apart() {
    check(&[
        ("", ""),
        ("   ", ""),
        ("# nothing", ""),
        ("\n\n", ""),
        ("ls", "ls"),
        ("  ls   -l\t/tmp  ", "ls -l /tmp"),
        ("ls -l # all of them", "ls -l"),
        ("echo a#b", "echo a#b"),
        ("a; b", "a ; b"),
        ("a;b;", "a ; b"),
        ("a && b || c", "a ; b ; c"),
        ("a&&b||c", "a ; b ; c"),
        ("a & b", "a ; b"),
        ("a&", "a"),
        ("a\nb\n\nc", "a ; b ; c"),
        ("a &&\nb", "a ; b"),
        ("a |\n# comment\nb", "a ; b <a"),
        ("a | b | c", "a ; b <a ; c <b"),
        ("a |& b", "a ; b <a"),
        ("! grep -q x f", "grep -q x f"),
        ("! a | b", "a ; b <a"),
        ("git push \\\n  --force", "git push --force"),
        ("git pu\\\nsh", "git push"),
        ("/bin/rm -rf /", "rm -rf /"),
        ("./script.sh x", "script.sh x"),
        ("~/bin/tool x", "tool x"),
        ("[ -f a ] && rm a", "[ -f a ] ; rm a"),
        ("test -n x", "test -n x"),
        ("[[ -f a && $(b) == c ]] && d", "? b ; ?[[ -f a && $(b) == c ; d"),
        ("[[ a =~ ^(b|c)$ ]]; d", "[[ a =~ ^ ( b | c ) $ ; d"),
        ("true;;", "? true"),
    ]);
}

#[test]
fn compound_commands_are_looked_into() {
    check(&[
        ("(a; b)", "a ; b"),
        ("(a) | b", "a ; b <a"),
        ("((a); b)", "a ; b"),
        ("{ a; b; }", "a ; b"),
        ("{ a; } && { b; }", "a ; b"),
        ("if a; then b; elif c; then d; else e; fi", "a ; b ; c ; d ; e"),
        ("if a\nthen\nb\nfi", "a ; b"),
        ("while a; do b; done", "a ; b"),
        ("until a; do b; done < f", "a <f ; b <f"),
        ("for x in 1 2 3; do echo hi; done", "echo hi"),
        ("for x in a b\ndo rm it\ndone", "rm it"),
        ("for x; do a; done", "a"),
        ("for x in $(ls); do a; done", "ls ; a"),
        ("for ((i=0; i<3; i++)); do a; done", "a"),
        ("select x in a b; do c; done", "c"),
        ("case $x in a) b;; c|d) e;; *) f; esac", "b ; e ; f"),
        ("case x in (a) b ;& c) d ;;& esac", "b ; d"),
        ("case x in\na)\n b\n ;;\nesac; z", "b ; z"),
        ("case `a` in esac", "a"),
        ("f() { a; }; f", "a ; f"),
        ("function f { a; }\nf", "a ; f"),
        ("function f() ( a )", "a"),
        ("f () if a; then b; fi", "a ; b"),
        ("time ls -l", "time ls -l ; time>ls -l"),
        ("time { a; b; }", "a ; b"),
        ("time -p (a)", "a"),
        ("coproc a b", "a b"),
        ("coproc NAME { a; }", "a"),
        ("(( x = 1 + 2 )) && a", "a"),
        ("(( x = $(a) ))", "a"),
        ("if a; then { b; } fi", "a ; b"),
        ("a | while read -r x; do rm it; done", "a ; read -r x <a ; rm it <a"),
        ("a | { b; c; } | d", "a ; b <a ; c <a ; d <c"),
        ("{ a; b; } > f 2>&1", "a >f ; b >f"),
        ("if a; then b", "? a ; b"),
        ("a; done", "? a"),
        ("(a", "? a"),
        ("a)", "? a"),
        ("{ a; } b", "? a"),
        ("a (b)", "? "),
        ("then a", "? "),
    ]);
}

#[test]
fn substitutions_are_looked_into_wherever_they_stand() {
    check(&[
        ("echo $(rm -rf /)", "? rm -rf / ; ?echo \"$(rm -rf /)\""),
        ("echo `rm -rf /`", "? rm -rf / ; ?echo \"`rm -rf /`\""),
        ("echo \"a $(b c) d\"", "? b c ; ?echo \"a $(b c) d\""),
        ("echo \"`b \\`c\\``\"", "? c ; ?b `c` ; ?echo \"`b \\\\`c\\\\``\""),
        ("echo '$(a)'", "echo $(a)"),
        ("echo \\$(a)", "? "),
        ("x=$(a)", "a"),
        ("x=`a` b", "a ; x=`a` b"),
        ("a > $(b)", "? b ; ?a >$(b)"),
        ("cat <(a) >(b)", "? a ; b ; ?cat <(a) >(b)"),
        ("echo ${x:-$(a)}", "? a ; ?echo ${x:-$(a)}"),
        ("echo \"${x:=`a`}\"", "? a ; ?echo ${x:=`a`}"),
        ("echo ${x/\"$(a)\"/b}", "? a ; ?echo ${x/\"$(a)\"/b}"),
        ("echo $(( $(a) + 1 ))", "? a ; ?echo \"$(( $(a) + 1 ))\""),
        ("echo $((1+2))", "? ?echo $((1+2))"),
        ("echo $((a); (b))", "? a ; b ; ?echo \"$((a); (b))\""),
        ("a=($(b) c)", "b"),
        ("a[$(b)]=1", "? b ; ?(a[$(b)]=1)"),
        (
            "echo $(a $(b $(c $(d))))",
            "? d ; ?c $(d) ; ?b \"$(c $(d))\" ; ?a \"$(b $(c $(d)))\" ; ?echo \"$(a $(b $(c $(d))))\"",
        ),
        ("echo $(case x in a) b;; esac)", "? b ; ?echo \"$(case x in a) b;; esac)\""),
        ("echo $(a # )\n)", "? a ; ?echo \"$(a # )\\n)\""),
        ("echo \"$(echo \")\")\"", "? echo ) ; ?echo \"$(echo \\\")\\\")\""),
        ("$(a) b", "? a ; ?($(a)) b"),
        ("echo $[1 + `a`]", "? a ; ?echo \"$[1 + `a`]\""),
        ("echo $(a", "? a"),
        ("echo `a", "? "),
    ]);
}

#[test]
fn redirections_are_reported() {
    check(&[
        ("a > f", "a >f"),
        ("a >f b", "a b >f"),
        ("> f a", "a >f"),
        ("a 2>/dev/null >>g <h", "a >/dev/null >>g <h"),
        ("a 2>&1", "a"),
        ("a >&-", "a"),
        ("a &> f", "a &>f"),
        ("a &>> f", "a &>>f"),
        ("a >& f", "a >&f"),
        ("a >| f", "a >|f"),
        ("a <> f", "a <>f"),
        ("a {fd}> f", "a >f"),
        ("> /etc/passwd", "() >/etc/passwd"),
        ("a > \"/etc\"/pass'wd'", "a >/etc/passwd"),
        ("a > $HOME/x", "? ?a >$HOME/x"),
        ("x=/etc/passwd; a > $x", "a >/etc/passwd"),
        ("a > /etc/pass*", "? ?a >/etc/pass*"),
        ("echo 2 > f", "echo 2 >f"),
        ("a >", "? "),
        ("sudo tee f > g", "sudo tee f >g ; sudo>tee f >g"),
    ]);
}

#[test]
fn here_documents_are_read() {
    check(&[
        ("cat <<EOF\nrm -rf /\nEOF\nb", "cat ; b"),
        ("cat <<EOF\n$(a)\nEOF\n", "cat ; a"),
        ("cat <<'EOF'\n$(a)\nEOF\n", "cat"),
        ("cat <<\"EOF\"\n`a`\nEOF", "cat"),
        ("cat <<-EOF\n\t`a`\n\tEOF\nb", "cat ; a ; b"),
        ("cat <<A <<B\n$(a)\nA\n$(b)\nB\nc", "cat ; a ; b ; c"),
        ("cat <<EOF | b\ntext\nEOF\n", "cat ; b <cat"),
        ("cat <<EOF && b\n\"$(a)\nEOF\n", "cat ; b ; a"),
        ("cat <<EOF\n\\$(a)\nEOF", "cat"),
        (
            "git commit -m \"$(cat <<'EOF'\nIt's (a message\nEOF\n)\"",
            "? cat ; ?git commit -m \"$(cat <<'EOF'\\nIt's (a message\\nEOF\\n)\"",
        ),
        ("cat <<EOF\n$(a)", "? cat ; a"),
        ("cat <<EOF", "? cat"),
        ("cat <<< \"$(a)\"", "a ; cat"),
        ("if a; then cat <<E; fi\n$(b)\nE\nc", "a ; cat ; b ; c"),
    ]);
}
