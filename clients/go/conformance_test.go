package hookyard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

var ctx = context.Background()

// The cases that all clients share, at a daemon and at a stub of one.

type eventCase struct {
	Kind    EventKind
	With    eventFields
	Sent    map[string]any
	Payload json.RawMessage
}

// eventFields are what the methods of all kinds take.
type eventFields struct {
	Source, Reason, Trigger, Model, Error, Type, Message, Agent, Name string
	Prompt, Context, Request, Response, Tools, Output                 json.RawMessage
	Tool                                                              struct {
		Name, ID string
		Input    json.RawMessage
	}
}

// ask calls the method of a kind of event.
func (f eventFields) ask(yard *Client, kind EventKind, place Place) (Outcome, error) {
	tool := ToolCall{f.Tool.Name, f.Tool.Input, f.Tool.ID}
	model := ModelCall{f.Model, f.Request, f.Response}
	return map[EventKind]func() (Outcome, error){
		KindSessionStarted:       func() (Outcome, error) { return yard.SessionStarted(ctx, place, f.Source) },
		KindSessionEnded:         func() (Outcome, error) { return yard.SessionEnded(ctx, place, f.Reason) },
		KindPromptSubmitted:      func() (Outcome, error) { return yard.PromptSubmitted(ctx, place, f.Prompt) },
		KindBeforeContextCompact: func() (Outcome, error) { return yard.BeforeContextCompact(ctx, place, f.Trigger, f.Context) },
		KindAfterContextCompact:  func() (Outcome, error) { return yard.AfterContextCompact(ctx, place, f.Trigger, f.Context) },
		KindBeforeContextBuild:   func() (Outcome, error) { return yard.BeforeContextBuild(ctx, place, f.Context) },
		KindAfterContextBuild:    func() (Outcome, error) { return yard.AfterContextBuild(ctx, place, f.Context) },
		KindBeforeModelCall:      func() (Outcome, error) { return yard.BeforeModelCall(ctx, place, model) },
		KindAfterModelCall:       func() (Outcome, error) { return yard.AfterModelCall(ctx, place, model) },
		KindBeforeToolSelection:  func() (Outcome, error) { return yard.BeforeToolSelection(ctx, place, f.Tools) },
		KindBeforeToolDispatch:   func() (Outcome, error) { return yard.BeforeToolDispatch(ctx, place, tool) },
		KindAfterToolDispatch:    func() (Outcome, error) { return yard.AfterToolDispatch(ctx, place, tool, f.Output) },
		KindToolFailed:           func() (Outcome, error) { return yard.ToolFailed(ctx, place, tool, f.Error) },
		KindPermissionRequested:  func() (Outcome, error) { return yard.PermissionRequested(ctx, place, tool) },
		KindNotification:         func() (Outcome, error) { return yard.Notification(ctx, place, f.Type, f.Message) },
		KindAgentStopping:        func() (Outcome, error) { return yard.AgentStopping(ctx, place) },
		KindSubagentStarted:      func() (Outcome, error) { return yard.SubagentStarted(ctx, place, f.Agent) },
		KindSubagentStopping:     func() (Outcome, error) { return yard.SubagentStopping(ctx, place, f.Agent) },
		KindRunCompleted:         func() (Outcome, error) { return yard.RunCompleted(ctx, place, f.Trigger) },
		KindRunFailed:            func() (Outcome, error) { return yard.RunFailed(ctx, place, f.Trigger) },
		KindHostEvent:            func() (Outcome, error) { return yard.HostEvent(ctx, place, f.Name) },
	}[kind]()
}

func TestEveryKindOfEventHasAMethodAndItsFields(t *testing.T) {
	yard := NewFake(nil, Call{})
	place := Place{"r", "s", "w", "/c", "e", Bool(true)}
	all := cases[eventCase](t, "events")
	equal(t, len(all), len(eventKinds))
	for number, one := range all {
		equal(t, one.Kind, eventKinds[number])
		outcome, err := one.With.ask(yard.Client, one.Kind, place)
		must(t, err)
		equal(t, code(outcome), "", one.Kind)
		expected := map[string]any{
			"event": one.Kind, "run_id": "r", "session_id": "s", "workspace_id": "w", "cwd": "/c", "event_id": "e", "wait": true,
		}
		for name, value := range one.Sent {
			expected[name] = value
		}
		equalJSON(t, yard.Events()[number], expected)
	}
	_, err := yard.AgentStopping(ctx, Place{Run: "r"})
	must(t, err)
	equalJSON(t, yard.Events()[len(all)], map[string]string{"event": "agent_stopping", "run_id": "r", "session_id": "r"})
}

func TestConformanceAtADaemon(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, door string) {
		for _, one := range cases[eventCase](t, "events") {
			outcome, err := one.With.ask(yard, one.Kind, Place{Run: fmt.Sprint("kinds-", door, one.Kind)})
			must(t, err)
			equal(t, outcome.Verdict, Proceed, one.Kind)
			equal(t, code(outcome), "", one.Kind)
			equalJSON(t, outcome.Payload, one.Payload, one.Kind)
		}
		for number, one := range cases[struct {
			Name, Command string
			Expect        map[string]any
		}](t, "outcomes") {
			outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: fmt.Sprint("run-", door, number)}, bash(one.Command))
			must(t, err)
			equal(t, code(outcome), "", one.Name)
			equalParts(t, outcome, one.Expect, one.Name)
		}
	})
}

// equalParts compares the parts of an outcome that a case names.
func equalParts(t *testing.T, outcome Outcome, expected map[string]any, name string) {
	t.Helper()
	seen := map[string]any{
		"verdict": outcome.Verdict, "proceeds": outcome.Proceeds(), "payload": outcome.Payload, "by": outcome.By,
		"reason": outcome.Reason, "notes": outcome.Notes, "patched": outcome.Patched,
	}
	for part, value := range expected {
		equalJSON(t, seen[part], value, name, ": ", part)
	}
}

type faultCase struct {
	Name, Run, ID string
	Input         json.RawMessage
	Timeout       float64
	RetryFor      float64 `json:"retry_for"`
	Requests      []struct {
		Patched string `json:"patched_json"`
	}
	Problem struct {
		Code                 any
		Retry, Message, Hint *string
	}
	Expect  map[string]any
	MayKeep bool `json:"may_keep"`
}

func TestNoFaultOfADaemonIsConsent(t *testing.T) {
	for _, ifDown := range []Verdict{Block, Allow} {
		t.Run(ifDown.String(), func(t *testing.T) {
			directory := startStub(t)
			for number, one := range cases[faultCase](t, "faults") {
				for _, door := range []string{"lines", "http"} {
					path := fmt.Sprintf("%s/%d.%s", directory, number, door)
					options := Options{Socket: path}
					if door == "lines" {
						options = Options{Lines: path}
					}
					options.IfDown = ifDown
					t.Run(one.Name+" "+door, func(t *testing.T) { one.judge(t, options) })
				}
			}
		})
	}
}

func (c faultCase) judge(t *testing.T, options Options) {
	var told []*Problem
	options.OnProblem = func(problem *Problem, _ *Outcome) { told = append(told, problem) }
	options.Timeout, options.RetryFor = time.Minute, 30*time.Second
	if c.Timeout > 0 {
		options.Timeout = durationOf(c.Timeout)
	}
	if c.RetryFor > 0 {
		options.RetryFor = durationOf(c.RetryFor)
	}
	place := Place{Run: c.Run, ID: c.ID}
	if place.Run == "" {
		place.Run = "r"
	}
	if c.Input == nil {
		c.Input = json.RawMessage(`{"command": "ls"}`)
	}
	outcome, err := connect(t, options).BeforeToolDispatch(ctx, place, ToolCall{Name: "Bash", Input: c.Input})
	must(t, err)
	if c.MayKeep {
		// A json.RawMessage has the number as it was written.
		equal(t, string(outcome.Payload), c.Requests[0].Patched)
		c.Expect = map[string]any{"verdict": "proceed"}
	}
	if c.Expect != nil {
		equal(t, code(outcome), "")
		equalParts(t, outcome, c.Expect, c.Name)
		return
	}
	c.judgeProblem(t, outcome, options.IfDown)
	if len(told) != 1 || told[0] != outcome.Problem {
		t.Errorf("told of %v", told)
	}
}

func (c faultCase) judgeProblem(t *testing.T, outcome Outcome, ifDown Verdict) {
	problem := outcome.Problem
	if problem == nil {
		t.Fatalf("no problem: %+v", outcome)
	}
	if !strings.Contains(fmt.Sprintf(" %v ", c.Problem.Code), problem.Code) {
		t.Errorf("the problem is %v, not %v", problem, c.Problem.Code)
	}
	seen := []string{string(problem.Retry), problem.Message, problem.Hint}
	for number, expected := range []*string{c.Problem.Retry, c.Problem.Message, c.Problem.Hint} {
		if expected != nil {
			equal(t, seen[number], *expected)
		}
	}
	verdict := Block
	if ifDown == Allow && !errors.Is(problem, ErrUnknownVerdict) {
		verdict = Proceed
	}
	equal(t, outcome.Verdict, verdict)
	equalJSON(t, outcome.Payload, c.Input)
	if !strings.Contains(outcome.Reason, problem.Message) || !strings.Contains(outcome.Reason, problem.Hint) {
		t.Errorf("the reason is %q", outcome.Reason)
	}
}
