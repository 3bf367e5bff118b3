package hookyard

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// NoRetry is a RetryFor: an event is sent once.
const NoRetry time.Duration = -1

const (
	// Hooks may take as long.
	longestEvent = 10 * time.Minute
	// How long a guard waits for a daemon that restarts.
	guardRetriesFor = 5 * time.Second
	firstPause      = 10 * time.Millisecond
	longestPause    = 160 * time.Millisecond
)

// Call is what holds for one event.
type Call struct {
	// What to answer if no hook could be asked, whatever the reason: Block, or Allow, which is answered as Proceed.
	// Default: Block.
	IfDown Verdict
	// The longest that the event may take, with all attempts. The deadline of the context holds as well. Default: 10 minutes.
	Timeout time.Duration
	// How long to send the event again where that is safe, as while the daemon restarts. Default: 5 seconds to block, else
	// NoRetry.
	RetryFor time.Duration
	// Says the W3C trace context of an event, such as 00-…-…-01. An invalid one is ignored.
	Traceparent func(context.Context) string
}

// Options are what Connect takes: where the daemon is, and what holds for all events.
type Options struct {
	// The path of the socket of lines (`listen.lines`): many events at the same time on one connection.
	Lines string
	// The path of the event socket (`listen.socket`).
	Socket string
	// The address of `listen.tcp`, such as http://127.0.0.1:8787. Without any of the three: HOOKYARD_LISTEN_LINES,
	// HOOKYARD_LISTEN_SOCKET, or the default socket.
	URL string
	// Says the token of `listen.token_file`, for each event. It goes with a URL.
	Token func() (string, error)
	// Is told of each event without a verdict of hooks. Without it, an event that goes on all the same is a line of the
	// package log.
	OnProblem func(*Problem, *Outcome)
	Call
}

// over is what a call says, and for the rest what another one does.
func (c Call) over(rest Call) Call {
	if c.IfDown == 0 {
		c.IfDown = rest.IfDown
	}
	if c.Timeout == 0 {
		c.Timeout = rest.Timeout
	}
	if c.RetryFor == 0 {
		c.RetryFor = rest.RetryFor
	}
	if c.Traceparent == nil {
		c.Traceparent = rest.Traceparent
	}
	return c
}

func (c Call) check() error {
	if c.IfDown != 0 && c.IfDown != Block && c.IfDown != Allow {
		return fmt.Errorf("hookyard: IfDown is %v, not Block or Allow", c.IfDown)
	}
	if c.Timeout < 0 {
		return fmt.Errorf("hookyard: Timeout is %v, which is no time", c.Timeout)
	}
	if c.RetryFor < 0 && c.RetryFor != NoRetry {
		return fmt.Errorf("hookyard: RetryFor is %v, which is neither a time nor NoRetry", c.RetryFor)
	}
	return nil
}

// trace is the trace context, if it is one; any other is ignored, as W3C Trace Context requires.
func (c Call) trace(ctx context.Context) string {
	if c.Traceparent == nil {
		return ""
	}
	trace := c.Traceparent(ctx)
	const form = "00-00000000000000000000000000000000-0000000000000000-00"
	if len(trace) != len(form) {
		return ""
	}
	for i := range form {
		digit := trace[i]
		isHex := '0' <= digit && digit <= '9' || 'a' <= digit && digit <= 'f'
		if form[i] == '-' && digit != '-' || form[i] != '-' && !isHex {
			return ""
		}
	}
	version, id, parent := trace[:2], trace[3:35], trace[36:52]
	if version == "ff" || strings.Trim(id, "0") == "" || strings.Trim(parent, "0") == "" {
		return ""
	}
	return trace
}

// attempts says when an event is sent again, and until when.
type attempts struct {
	start, deadline, last time.Time
	isKnownAgain          bool
	next                  time.Duration
}

func (c Call) attempts(ctx context.Context, event *Event) attempts {
	timeout, retryFor := c.Timeout, c.RetryFor
	if timeout == 0 {
		timeout = longestEvent
	}
	if retryFor == 0 && c.IfDown != Allow {
		retryFor = guardRetriesFor
	}
	start := time.Now()
	deadline := start.Add(timeout)
	if own, ok := ctx.Deadline(); ok && own.Before(deadline) {
		deadline = own
	}
	last := start.Add(retryFor)
	if last.After(deadline) {
		last = deadline
	}
	return attempts{start, deadline, last, event.EventID != "" || event.ToolCallID != "", firstPause}
}

// pause waits before the next attempt. Returns false if there is none.
func (a *attempts) pause(ctx context.Context, problem *Problem) bool {
	pause := a.next
	if problem.RetryAfter > pause {
		pause = problem.RetryAfter
	}
	mayRetry := problem.Retry == RetrySafe || problem.Retry == RetryMayRepeat && a.isKnownAgain
	if !mayRetry || !time.Now().Add(pause).Before(a.last) {
		return false
	}
	if a.next *= 2; a.next > longestPause {
		a.next = longestPause
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

// ended is why there is no more time.
func (a *attempts) ended(ctx context.Context) *Problem {
	if ctx.Err() == context.Canceled {
		return cancelled(ctx.Err())
	}
	return late(a.deadline.Sub(a.start))
}
