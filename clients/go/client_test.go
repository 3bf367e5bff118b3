package hookyard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// What the client does beyond the cases that all clients share, at a daemon.

func TestAThousandEventsAtTheSameTime(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, door string) {
		atOnce := map[string]int{"lines": 1000}[door]
		if atOnce == 0 {
			atOnce = 32 // Each event over HTTP has a connection, and the daemon has limits.
		}
		numbers, group := make(chan int), sync.WaitGroup{}
		for i := 0; i < atOnce; i++ {
			group.Add(1)
			go func() {
				defer group.Done()
				for number := range numbers {
					command, expected := "ls", Allow
					if number%2 == 0 {
						command, expected = "curl x", Ask
					}
					outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: fmt.Sprint("many-", number)}, bash(command))
					if err != nil || outcome.Verdict != expected {
						t.Errorf("%d: %v, %v", number, outcome, err)
					}
				}
			}()
		}
		for number := 0; number < 1000; number++ {
			numbers <- number
		}
		close(numbers)
		group.Wait()
	})
}

func TestSixteenMegabytesAreSentAndMoreIsTold(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, door string) {
		sent := func(size int) Outcome {
			input := map[string]string{"text": strings.Repeat("€", size/3)}
			outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: "large"}, ToolCall{Name: "Read", Input: input})
			must(t, err)
			return outcome
		}
		largest := sent(16<<20 - 1024)
		equal(t, largest.Verdict, Proceed)
		equal(t, code(largest), "")
		for i := 0; i < 5; i++ {
			equal(t, code(sent(17<<20)), "too_large")
		}
		outcome, err := yard.AgentStopping(ctx, Place{Run: "large"})
		must(t, err)
		equal(t, code(outcome), "")
	})
}

func TestNoNumberAndNoLetterIsChanged(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, _ string) {
		sent := func(name string, input any) Outcome {
			outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: "exact"}, ToolCall{Name: name, Input: input})
			must(t, err)
			return outcome
		}
		large := new(big.Int).Lsh(big.NewInt(1), 70)
		kept := sent("Integer", map[string]any{"keep": large})
		var payload map[string]any
		must(t, kept.DecodePayload(&payload))
		equal(t, payload, map[string]any{"keep": json.Number(large.String()), "n": json.Number("12345678901234567890")})
		equal(t, string(sent("Decimal", json.RawMessage("{\n}")).Payload), `{"n":0.1000000000000000055511151231257827}`)
		letters := map[string]string{"letters": "\x00\u2028\u0085😀<&>\ufffd\"\\\r\n"}
		equalJSON(t, sent("Read", letters).Payload, letters)
		for _, written := range []any{
			json.RawMessage(`"\ufffd"`), []any{json.RawMessage(`"\ufffd"`), "\ufffd", struct{ embedded }{embedded{"\ufffd"}}, asText("\ufffd"), &byAddress{"\xff"}},
		} {
			outcome := sent("Read", written)
			equal(t, code(outcome), "")
			equalJSON(t, outcome.Payload, written)
		}
		for _, none := range []any{
			math.NaN(), math.Inf(-1), "\xff", []any{"\xff"}, map[string]any{"\xff": 1}, json.RawMessage("\"\xff\""), json.RawMessage("{"),
			func() {}, &struct{ Text string }{"\xff"}, struct{ embedded }{embedded{"\xff"}}, struct{ *embedded }{&embedded{"\xff"}},
			asText("\xff"), map[keyText]int{{"\xff"}: 1}, byAddress{"\xff"}, []any{json.RawMessage(`"\ufffd"`), "\xff"},
		} {
			outcome := sent("Read", none)
			equal(t, code(outcome), "bad_event", none)
			equal(t, outcome.Verdict, Block)
		}
		outcome, err := yard.Dispatch(ctx, Event{Event: KindAgentStopping, RunID: "r", SessionID: "r", Extra: map[string]any{"wait": false}})
		must(t, err)
		equal(t, code(outcome), "bad_event")
	})
}

// What encoding/json finds a text in.
type (
	embedded  struct{ Text string }
	asText    []byte
	keyText   struct{ text string }
	byAddress struct{ Text string }
)

func (t asText) MarshalText() ([]byte, error) { return t, nil }

func (t keyText) MarshalText() ([]byte, error) { return []byte(t.text), nil }

func (*byAddress) MarshalJSON() ([]byte, error) { return []byte(`"\ufffd"`), nil }

func TestAnExtraFieldMayHaveAnyNameAndBeNull(t *testing.T) {
	yard := NewFake(nil, Call{})
	extra := map[string]any{"-": "a", "none": nil, "nothing": json.RawMessage(nil)}
	outcome, err := yard.Dispatch(ctx, Event{Event: KindAgentStopping, RunID: "r", SessionID: "r", Extra: extra})
	must(t, err)
	equal(t, code(outcome), "")
	equalJSON(t, yard.Events()[0].Extra, extra)
}

func TestATimeLimitEndsTheEventAndItsHooks(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, door string) {
		place, slow := Place{Run: "late-" + door}, ToolCall{Name: "Slow", Input: struct{}{}}
		brief := Call{Timeout: 100 * time.Millisecond, IfDown: Allow}
		outcome, err := yard.With(brief).BeforeToolDispatch(ctx, place, slow)
		must(t, err)
		equal(t, outcome.Verdict, Proceed)
		soon, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		for i := 0; i < 2; i++ {
			// The second time there is none left.
			outcome, err = yard.BeforeToolDispatch(soon, place, slow)
			must(t, err)
			equal(t, outcome.Verdict, Block)
			if !errors.Is(outcome.Problem, ErrTimeout) || !errors.Is(outcome.Problem, context.DeadlineExceeded) {
				t.Errorf("the problem is %v", outcome.Problem)
			}
		}
		goesOn(t, yard, place)
	})
}

func TestCancellingEndsTheEventAndItsHooks(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, door string) {
		place := Place{Run: "cancelled-" + door}
		cancelled, cancel := context.WithCancel(ctx)
		time.AfterFunc(100*time.Millisecond, cancel)
		for i := 0; i < 2; i++ {
			allowing := yard.With(Call{IfDown: Allow})
			outcome, err := allowing.BeforeToolDispatch(cancelled, place, ToolCall{Name: "Slow", Input: struct{}{}})
			if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrCancelled) {
				t.Errorf("the error is %v", err)
			}
			equal(t, outcome.Verdict, Block)
		}
		goesOn(t, yard, place)
	})
}

// goesOn: events of a run take turns, so that this one would wait for a minute.
func goesOn(t *testing.T, yard *Client, place Place) {
	t.Helper()
	outcome, err := yard.With(Call{Timeout: 30 * time.Second}).BeforeToolDispatch(ctx, place, bash("ls"))
	must(t, err)
	equal(t, outcome.Verdict, Allow)
}

func TestAClosedClientHasNoAnswers(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, door string) {
		time.AfterFunc(100*time.Millisecond, yard.Close)
		outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: "closed-" + door}, ToolCall{Name: "Slow", Input: struct{}{}})
		must(t, err)
		equal(t, code(outcome), "closed")
		outcome, err = yard.AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, code(outcome), "closed")
	})
}

func TestAClientOutlivesADaemonThatIsKilled(t *testing.T) {
	d := newDaemon(t)
	for _, door := range []string{"lines", "socket"} {
		yard := connect(t, d.options(door)).With(Call{RetryFor: time.Minute})
		goesOn(t, yard, Place{Run: "killed"})
		killed := make(chan struct{})
		time.AfterFunc(300*time.Millisecond, func() {
			d.kill()
			close(killed)
		})
		outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: "slow"}, ToolCall{Name: "Slow", Input: struct{}{}})
		must(t, err)
		equal(t, code(outcome), "lost", door)
		<-killed
		outcome, err = yard.With(Call{RetryFor: NoRetry}).AgentStopping(ctx, Place{Run: "killed"})
		must(t, err)
		equal(t, code(outcome), "down", door)
		equal(t, outcome.Problem.Retry, RetrySafe)
		asked := make(chan Outcome)
		go func() {
			outcome, _ := yard.BeforeToolDispatch(ctx, Place{Run: "killed"}, bash("ls"))
			asked <- outcome
		}()
		d.start()
		outcome = <-asked
		equal(t, outcome.Verdict, Allow, door)
	}
}

func TestAWrongTokenIsToldAndNotShown(t *testing.T) {
	d := newDaemon(t)
	for code, token := range map[string]func() (string, error){
		"unauthorized": func() (string, error) { return "secret-of-nobody", nil },
		"bad_token":    func() (string, error) { return "secret-of\r\nnobody", nil },
	} {
		outcome, err := connect(t, Options{URL: d.url + "/", Token: token}).AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, outcome.Verdict, Block)
		if !errors.Is(outcome.Problem, &Problem{Code: code}) || strings.Contains(outcome.Reason, "secret") {
			t.Errorf("%s: %v", code, outcome.Problem)
		}
	}
	unread := errors.New("no file")
	away := connect(t, Options{URL: d.url, Token: func() (string, error) { return "", unread }})
	outcome, err := away.AgentStopping(ctx, Place{Run: "r"})
	must(t, err)
	if !errors.Is(outcome.Problem, ErrBadToken) || !errors.Is(outcome.Problem, unread) {
		t.Errorf("the problem is %v", outcome.Problem)
	}
}

func TestNoDaemonInADirectoryThatOthersCanWriteToIsAsked(t *testing.T) {
	d := newDaemon(t)
	must(t, os.Chmod(d.directory, 0o777))
	for _, door := range []string{"lines", "socket"} {
		outcome, err := connect(t, d.options(door)).AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, code(outcome), "untrusted_socket")
	}
	must(t, os.Chmod(d.directory, 0o700))
}

func TestAnEventMayBeReportedWithoutWaiting(t *testing.T) {
	newDaemon(t).every(t, func(t *testing.T, yard *Client, _ string) {
		outcome, err := yard.RunCompleted(ctx, Place{Run: "unwaited", Wait: Bool(false)}, "user")
		must(t, err)
		equal(t, outcome.Verdict, Proceed)
		equal(t, code(outcome), "")
	})
}
