package hookyard

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// Retry says whether an event without an answer may be sent again.
type Retry string

// What there is.
const (
	// RetrySafe: no hook has run.
	RetrySafe Retry = "safe"
	// RetryMayRepeat: hooks may have run.
	RetryMayRepeat Retry = "may_repeat"
	// RetryNever: it would fail again.
	RetryNever Retry = "never"
)

// Problem is why an event has no answer, or an invalid one.
//
// errors.Is finds it by its code: errors.Is(problem, hookyard.ErrDown), or, for an error of the daemon,
// errors.Is(problem, &hookyard.Problem{Code: "overloaded"}). One for want of time is also a context.DeadlineExceeded,
// and that of an event that was cancelled a context.Canceled.
type Problem struct {
	// A stable word: one of the daemon's error codes, or that of an error below.
	Code string
	// What is wrong.
	Message string
	// What to do.
	Hint string
	// Whether the event may be sent again.
	Retry Retry
	// The time after which to send it again, if the daemon says so.
	RetryAfter time.Duration
	cause      error
}

// The problems that this package itself finds, to compare with.
var (
	// ErrDown: nobody listens there.
	ErrDown = &Problem{Code: "down"}
	// ErrLost: the connection ended before the answer.
	ErrLost = &Problem{Code: "lost"}
	// ErrTimeout: there was no answer in time.
	ErrTimeout = &Problem{Code: "timeout"}
	// ErrCancelled: the context was cancelled.
	ErrCancelled = &Problem{Code: "cancelled"}
	// ErrBadAnswer: the answer is invalid.
	ErrBadAnswer = &Problem{Code: "bad_answer"}
	// ErrUnknownVerdict: hooks have said something, and this version of the client does not know what.
	ErrUnknownVerdict = &Problem{Code: "unknown_verdict"}
	// ErrBadEvent: the event has no JSON form, or the daemon refuses it.
	ErrBadEvent = &Problem{Code: "bad_event"}
	// ErrBadToken: the token has characters that no token has, or cannot be read.
	ErrBadToken = &Problem{Code: "bad_token"}
	// ErrUntrustedSocket: another user could have put the socket there.
	ErrUntrustedSocket = &Problem{Code: "untrusted_socket"}
	// ErrClosed: this client is closed.
	ErrClosed = &Problem{Code: "closed"}
)

// Error says what is wrong and what to do.
func (p *Problem) Error() string {
	if p.Hint == "" {
		return "hookyard: " + p.Message
	}
	return "hookyard: " + p.Message + "; " + p.Hint
}

// Is compares codes.
func (p *Problem) Is(target error) bool {
	other, ok := target.(*Problem)
	return ok && other.Code == p.Code
}

// Unwrap is what the problem came of, if that is an error.
func (p *Problem) Unwrap() error { return p.cause }

func down(where string, why error) *Problem {
	message := fmt.Sprintf("no daemon answers at %s: %v", where, why)
	return &Problem{ErrDown.Code, message, "start `hookyard serve`, or correct the address", RetrySafe, 0, why}
}

func lost(why string, cause error) *Problem {
	const hint = "look at the log of the daemon; give the event an `ID`, so that it can be sent again without running hooks twice"
	return &Problem{ErrLost.Code, "the connection ended before the answer: " + why, hint, RetryMayRepeat, 0, cause}
}

func badAnswer(why string) *Problem {
	const hint = "check that this is a hookyard of a version that the client knows"
	return &Problem{ErrBadAnswer.Code, "the answer is invalid: " + why, hint, RetryNever, 0, nil}
}

func tooLong() *Problem { return badAnswer(fmt.Sprintf("it is longer than %d bytes", longestAnswer)) }

func unknownVerdict(verdict string) *Problem {
	message := "the verdict of the answer is " + verdict
	return &Problem{ErrUnknownVerdict.Code, message, "use a client of the daemon's version", RetryNever, 0, nil}
}

func badEvent(why error) *Problem {
	message := fmt.Sprintf("the event has no JSON form: %v", why)
	return &Problem{ErrBadEvent.Code, message, "correct the event", RetryNever, 0, why}
}

func badToken(why string, cause error) *Problem {
	return &Problem{ErrBadToken.Code, "the token " + why, "correct it", RetryNever, 0, cause}
}

func late(limit time.Duration) *Problem {
	const hint = "look at `hookyard status` for what is slow, or raise `Timeout` or the deadline of the context"
	message := fmt.Sprintf("no answer within %v", limit.Round(time.Microsecond))
	return &Problem{ErrTimeout.Code, message, hint, RetryMayRepeat, 0, context.DeadlineExceeded}
}

func cancelled(cause error) *Problem {
	return &Problem{ErrCancelled.Code, "the host has cancelled the event", "", RetryMayRepeat, 0, cause}
}

func closed() *Problem {
	return &Problem{ErrClosed.Code, "this client is closed", "connect again", RetryNever, 0, nil}
}

// daemonError is the error of a daemon as it came. The header of HTTP that says when comes before what it has in itself.
func daemonError(raw json.RawMessage, after time.Duration) *Problem {
	var said struct {
		Code, Message *string
		Hint          any
		Retry         Retry
		RetryAfter    any `json:"retry_after"`
	}
	err := json.Unmarshal(raw, &said)
	isRetry := said.Retry == RetrySafe || said.Retry == RetryMayRepeat || said.Retry == RetryNever
	if err != nil || said.Code == nil || said.Message == nil || !isRetry {
		return badAnswer("an error without `code`, `message` and `retry`")
	}
	hint, _ := said.Hint.(string)
	if seconds, ok := said.RetryAfter.(float64); ok && after == 0 {
		after = durationOf(seconds)
	}
	return &Problem{*said.Code, *said.Message, hint, said.Retry, after, nil}
}

func durationOf(seconds float64) time.Duration {
	return time.Duration(math.Min(math.Max(seconds, 0), 1e9) * float64(time.Second))
}
