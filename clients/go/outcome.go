package hookyard

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// The part of an event that its hooks may change.
var targetOf = map[EventKind]Target{
	KindPromptSubmitted:      TargetPrompt,
	KindBeforeContextCompact: TargetContext,
	KindAfterContextCompact:  TargetContext,
	KindBeforeContextBuild:   TargetContext,
	KindAfterContextBuild:    TargetContext,
	KindBeforeModelCall:      TargetModelRequest,
	KindAfterModelCall:       TargetModelResponse,
	KindBeforeToolSelection:  TargetToolConfig,
	KindBeforeToolDispatch:   TargetToolInput,
	KindAfterToolDispatch:    TargetToolOutput,
	KindPermissionRequested:  TargetToolInput,
}

// Outcome is the answer of hookyard to one event, or what IfDown says in its place.
type Outcome struct {
	Answer
	// The part of the event that hooks may change (a tool's input or output, the prompt, …), as JSON with their changes: go
	// on with this. Nil if there is none.
	Payload json.RawMessage
	// Why no hook was asked or understood, else nil: the verdict is that of IfDown.
	Problem *Problem
}

// Proceeds says whether to go on: the verdict is Proceed or Allow. It is not that of the zero value.
func (o *Outcome) Proceeds() bool { return o.Verdict == Proceed || o.Verdict == Allow }

// DecodePayload reads the payload as encoding/json does, except that in an `any`, numbers are a json.Number.
func (o *Outcome) DecodePayload(into any) error {
	if o.Payload == nil {
		return fmt.Errorf("hookyard: an event %s without a payload", o.Event)
	}
	return decode(o.Payload, into)
}

// String is the word of a verdict, and empty for the zero value.
func (v Verdict) String() string {
	if int(v) < len(verdicts) {
		return verdicts[v]
	}
	return "Verdict(" + strconv.Itoa(int(v)) + ")"
}

// MarshalText writes the word of a verdict.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the word of a verdict. A word that it does not know becomes the zero value, which lets nothing go on.
func (v *Verdict) UnmarshalText(text []byte) error {
	*v = 0
	for number, word := range verdicts {
		if word == string(text) {
			*v = Verdict(number)
		}
	}
	return nil
}

// readOutcome reads the outcome of an event. Returns a Problem if it is none; then there is no verdict.
func readOutcome(raw []byte, event *Event, payload json.RawMessage) (Outcome, *Problem) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil || parts == nil {
		return Outcome{}, badAnswer("it is not an object")
	}
	answer := Answer{Event: event.Event}
	if problem := readVerdict(parts, &answer); problem != nil {
		return Outcome{}, problem
	}
	if !isString(parts["event"]) || textOf(parts["event"]) != string(event.Event) {
		return Outcome{}, badAnswer(fmt.Sprintf("it is about %s, not about %q", shown(parts["event"]), event.Event))
	}
	if problem := readParts(parts, &answer); problem != nil {
		return Outcome{}, problem
	}
	if target := targetOf[event.Event]; target != "" {
		if patched, ok := answer.Patched[target]; ok {
			payload = patched
		}
	}
	return Outcome{Answer: answer, Payload: payload}, nil
}

func readVerdict(parts map[string]json.RawMessage, answer *Answer) *Problem {
	verdict := parts["verdict"]
	if !isString(verdict) {
		return badAnswer("its verdict is " + shown(verdict))
	}
	_ = answer.Verdict.UnmarshalText([]byte(textOf(verdict)))
	if answer.Verdict == 0 {
		return unknownVerdict(shown(verdict))
	}
	return nil
}

func readParts(parts map[string]json.RawMessage, answer *Answer) *Problem {
	if patched, ok := parts["patched"]; ok {
		if patched[0] != '{' {
			return badAnswer("its `patched` is not an object")
		}
		_ = json.Unmarshal(patched, &answer.Patched)
	}
	notes, hasNotes := parts["notes"]
	hooks := parts["hooks"]
	if hasNotes && notes[0] != '[' || len(hooks) == 0 || hooks[0] != '[' {
		return badAnswer("its `notes` or `hooks` are not a list")
	}
	if reason, ok := parts["reason"]; ok {
		if !isString(reason) {
			return badAnswer("its `reason` is not a text")
		}
		answer.Reason = textOf(reason)
	}
	suppress := parts["suppress_output"]
	if len(suppress) == 0 || suppress[0] != 't' && suppress[0] != 'f' {
		return badAnswer("its `suppress_output` is not a boolean")
	}
	answer.SuppressOutput = suppress[0] == 't'
	for name, into := range map[string]any{
		"notes": &answer.Notes, "hooks": &answer.Hooks, "native": &answer.Native, "by": &answer.By,
		"decision_id": &answer.DecisionID, "snapshot_version": &answer.SnapshotVersion,
	} {
		if part, ok := parts[name]; ok {
			// Of what a later version says in another way, there is as much as this one can read: the verdict stands.
			_ = json.Unmarshal(part, into)
		}
	}
	return nil
}

// outcomeWithout is the outcome of an event without a verdict of hooks.
func outcomeWithout(problem *Problem, event *Event, payload json.RawMessage, ifDown Verdict) Outcome {
	verdict := Block
	// After an unknown verdict: hooks have said something, and nobody knows what. That is no reason to go on.
	if ifDown == Allow && !errors.Is(problem, ErrUnknownVerdict) {
		verdict = Proceed
	}
	reason := "hookyard gave no verdict: " + problem.Message
	if problem.Hint != "" {
		reason += "; " + problem.Hint
	}
	return Outcome{Answer: Answer{Event: event.Event, Verdict: verdict, Reason: reason}, Payload: payload, Problem: problem}
}

func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

func textOf(raw json.RawMessage) string {
	var text string
	_ = json.Unmarshal(raw, &text)
	return text
}

// shown is a part of an answer, as far as a person reads it.
func shown(raw json.RawMessage) string {
	switch {
	case len(raw) == 0:
		return "missing"
	case isString(raw):
		return fmt.Sprintf("%.40q", textOf(raw))
	case raw[0] == '{':
		return "an object"
	case raw[0] == '[':
		return "a list"
	case raw[0] == 'n':
		return "null"
	case raw[0] == 't', raw[0] == 'f':
		return "a boolean"
	}
	return "a number"
}
