// Package hookyard is a client of hookyard, which runs hooks for AI-agent hosts: it reports what is about to happen, and
// gets one verdict.
//
//	yard, err := hookyard.Connect(hookyard.Options{Socket: os.Getenv("HOOKYARD_LISTEN_SOCKET")})
//	…
//	outcome, err := yard.BeforeToolDispatch(ctx, hookyard.Place{Run: "run-1"}, hookyard.ToolCall{Name: "Bash", Input: input})
//	if err != nil {
//		return err // The host has cancelled ctx.
//	}
//	if !outcome.Proceeds() {
//		return errors.New(outcome.Reason)
//	}
//
// A missing answer is never taken for consent: the verdict is then Block, unless the host chooses IfDown: hookyard.Allow.
package hookyard

import (
	"context"
	"encoding/json"
	"errors"
	"log"
)

// door is how events get to a daemon.
type door interface {
	// ask sends an event, and returns the outcome as it came, which is JSON on the door of lines at most. It ends with the
	// context, whose deadline is that of the event, and returns a Problem.
	ask(ctx context.Context, sent *sending) (json.RawMessage, *Problem)
	// close ends what is in flight and all connections.
	close()
}

// sending is an event on its way.
type sending struct {
	event *Event
	// The event as JSON.
	data []byte
	// A valid W3C trace context, or empty.
	trace string
}

// Client is a client of one daemon, for any number of goroutines.
type Client struct {
	door      door
	call      Call
	onProblem func(*Problem, *Outcome)
	// What is wrong with options of With.
	err error
}

// Connect returns a client of the daemon at an address. A daemon that is away is no error here: each event says so. Returns
// an error if the options are invalid.
func Connect(options Options) (*Client, error) {
	door, err := options.door()
	if err != nil {
		return nil, err
	}
	return clientOf(door, options)
}

func clientOf(door door, options Options) (*Client, error) {
	client := Client{door: door, onProblem: options.OnProblem}
	derived := client.With(options.Call)
	return derived, derived.err
}

// With returns the same client with those options that are set. If they are invalid, each event returns an error and blocks.
//
//	outcome, err := yard.With(hookyard.Call{Timeout: 5 * time.Second}).AgentStopping(ctx, place)
func (c *Client) With(call Call) *Client {
	derived := *c
	derived.call = call.over(c.call)
	if derived.err == nil {
		derived.err = derived.call.check()
	}
	return &derived
}

// Close ends the connections, also those of clients that With has made. Events in flight have no answer.
func (c *Client) Close() { c.door.close() }

// Dispatch sends an event with the fields of its JSON Schema, for what the other methods do not take.
//
// A missing answer is no error: then the verdict is that of IfDown, and Problem says why. Returns an error if the context
// is cancelled, which cancels the event and its hooks, or if the options of With are invalid. The outcome is a block then.
func (c *Client) Dispatch(ctx context.Context, event Event) (Outcome, error) {
	if c.err != nil {
		problem := &Problem{Code: "bad_options", Message: c.err.Error(), Retry: RetryNever, cause: c.err}
		return outcomeWithout(problem, &event, nil, Block), c.err
	}
	data, payload, problem := event.bytes()
	var raw json.RawMessage
	if problem == nil {
		raw, problem = c.ask(ctx, &sending{&event, data, c.call.trace(ctx)})
	}
	if problem == nil {
		var outcome Outcome
		if outcome, problem = readOutcome(raw, &event, payload); problem == nil {
			return outcome, nil
		}
	}
	if errors.Is(problem, ErrCancelled) && ctx.Err() != nil {
		return outcomeWithout(problem, &event, payload, Block), problem
	}
	outcome := outcomeWithout(problem, &event, payload, c.call.IfDown)
	c.report(problem, &outcome)
	return outcome, nil
}

func (c *Client) ask(ctx context.Context, sent *sending) (json.RawMessage, *Problem) {
	attempts := c.call.attempts(ctx, sent.event)
	ctx, cancel := context.WithDeadline(ctx, attempts.deadline)
	defer cancel()
	for {
		if ctx.Err() != nil {
			return nil, attempts.ended(ctx)
		}
		raw, problem := c.door.ask(ctx, sent)
		if problem == nil {
			return raw, nil
		}
		if ctx.Err() != nil && !errors.Is(problem, ErrClosed) {
			return nil, attempts.ended(ctx)
		}
		if !attempts.pause(ctx, problem) {
			return nil, problem
		}
	}
}

// report tells of an event without a verdict.
func (c *Client) report(problem *Problem, outcome *Outcome) {
	if c.onProblem != nil {
		c.onProblem(problem, outcome)
	} else if outcome.Proceeds() {
		log.Print(outcome.Reason)
	}
}
