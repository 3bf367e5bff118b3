package hookyard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// What the client does with servers of the test, and with none.

const (
	trace   = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	proceed = `{"decision_id":"d","event":"agent_stopping","verdict":"proceed","suppress_output":false,"hooks":[],"snapshot_version":1}`
)

// line is one of a host.
type line struct {
	ID      uint64
	Cancel  uint64
	Headers map[string]string
	Event   struct {
		Run string `json:"run_id"`
	}
	from net.Conn
}

func (l line) answer() { fmt.Fprintf(l.from, `{"id":%d,"outcome":%s}`+"\n", l.ID, proceed) }

// listen listens in a directory of the test.
func listen(t *testing.T) (string, net.Listener) {
	t.Helper()
	directory, err := os.MkdirTemp("", "hookyard-server-")
	must(t, err)
	listener, err := net.Listen("unix", directory+"/s")
	must(t, err)
	t.Cleanup(func() {
		_ = listener.Close()
		must(t, os.RemoveAll(directory))
	})
	return directory + "/s", listener
}

// serveLines hands each line to a function, one after the other. Returns the path, and how many connections there were.
func serveLines(t *testing.T, take func(line)) (string, *atomic.Int64) {
	t.Helper()
	path, listener := listen(t)
	count, turn := new(atomic.Int64), new(sync.Mutex)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			// A host that sends no more still waits for answers.
			t.Cleanup(func() { _ = connection.Close() })
			go func() {
				for lines := bufio.NewScanner(connection); lines.Scan(); {
					read := line{from: connection}
					if json.Unmarshal(lines.Bytes(), &read) != nil {
						return
					}
					turn.Lock()
					take(read)
					turn.Unlock()
				}
			}()
		}
	}()
	return path, count
}

func TestAValidTraceContextIsSentAndNoOther(t *testing.T) {
	var mutex sync.Mutex
	var seen []string
	note := func(trace string) {
		mutex.Lock()
		defer mutex.Unlock()
		seen = append(seen, trace)
	}
	path, _ := serveLines(t, func(read line) {
		note(read.Headers["traceparent"])
		read.answer()
	})
	socket, listener := listen(t)
	go func() {
		_ = http.Serve(listener, http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			note(request.Header.Get("traceparent"))
			fmt.Fprint(answer, proceed)
		}))
	}()
	type key struct{}
	said := func(ctx context.Context) string { return fmt.Sprint(ctx.Value(key{})) }
	for _, options := range []Options{{Lines: path}, {Socket: socket}} {
		options.Traceparent = said
		yard := connect(t, options)
		for _, value := range []string{
			trace, "00-bad\r\nhost: x", strings.ToUpper(trace), strings.ReplaceAll(trace, "-", "0"), "ff" + trace[2:],
			trace[:3] + strings.Repeat("0", 32) + trace[35:], trace[:36] + strings.Repeat("0", 16) + trace[52:],
		} {
			outcome, err := yard.AgentStopping(context.WithValue(ctx, key{}, value), Place{Run: "r"})
			must(t, err)
			equal(t, code(outcome), "")
		}
	}
	equal(t, seen, []string{trace, "", "", "", "", "", "", trace, "", "", "", "", "", ""})
}

func TestOneConnectionOfLinesIsUsedUntilTheDaemonDrainsIt(t *testing.T) {
	waiting := make(chan line, 3)
	path, count := serveLines(t, func(read line) {
		switch {
		case read.Cancel != 0:
			t.Error("there is no line of the host any more that could cancel it")
		case read.Event.Run == "r":
			read.answer()
		default:
			waiting <- read
		}
	})
	yard := connect(t, Options{Lines: path})
	first, late := make(chan Outcome), make(chan Outcome)
	ask := func(yard *Client, run string, to chan Outcome) {
		outcome, _ := yard.AgentStopping(ctx, Place{Run: run})
		to <- outcome
	}
	go ask(yard, "first", first)
	held := <-waiting
	go ask(yard.With(Call{Timeout: 300 * time.Millisecond}), "late", late)
	<-waiting
	asks := func() {
		outcome, err := yard.AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, code(outcome), "")
	}
	for i := 0; i < 5; i++ {
		asks()
	}
	equal(t, count.Load(), int64(1))
	fmt.Fprintln(held.from, `{"draining":true}`)
	until(t, func() bool {
		asks()
		return count.Load() == 2
	})
	equal(t, code(<-late), "timeout")
	held.answer()
	equal(t, code(<-first), "")
}

func TestADaemonThatDoesNotReadKeepsNobodyWaiting(t *testing.T) {
	path, listener := listen(t)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	yard := connect(t, Options{Lines: path, Call: Call{Timeout: 200 * time.Millisecond}})
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			outcome, _ := yard.PromptSubmitted(ctx, Place{Run: "r"}, strings.Repeat("x", 1<<20))
			equal(t, code(outcome), "timeout")
		}()
	}
	group.Wait()
}

func TestWhatADaemonDoesNotReadHasABound(t *testing.T) {
	path, listener := listen(t)
	accepted := make(chan net.Conn, 1)
	go func() {
		connection, err := listener.Accept()
		if err == nil {
			accepted <- connection
		}
	}()
	yard := connect(t, Options{Lines: path, Call: Call{Timeout: 20 * time.Second}})
	hasty := yard.With(Call{IfDown: Allow, Timeout: 20 * time.Millisecond})
	large := json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	inUse := func() uint64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := inUse()
	for i := 0; i < 150; i++ {
		outcome, err := hasty.PromptSubmitted(ctx, Place{Run: "r"}, large)
		must(t, err)
		equal(t, code(outcome), "timeout")
	}
	if grown := int64(inUse()) - int64(before); grown > 80<<20 {
		t.Errorf("%d bytes are kept", grown)
	}
	// Those that wait are sent once it reads.
	asked := make(chan Outcome)
	go func() {
		outcome, _ := yard.AgentStopping(ctx, Place{Run: "last"})
		asked <- outcome
	}()
	connection := <-accepted
	defer connection.Close()
	lines := bufio.NewReader(connection)
	for {
		text, err := lines.ReadBytes('\n')
		must(t, err)
		read := line{from: connection}
		must(t, json.Unmarshal(text, &read))
		if read.Event.Run == "last" {
			read.answer()
			break
		}
	}
	equal(t, code(<-asked), "")
}

func TestADaemonThatReadsNoMoreIsLost(t *testing.T) {
	path, _ := serveLines(t, func(read line) {
		_ = read.from.(*net.UnixConn).CloseRead()
		read.answer()
	})
	yard := connect(t, Options{Lines: path, Call: Call{Timeout: 20 * time.Second}})
	for _, expected := range []string{"", "lost"} {
		outcome, err := yard.AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, code(outcome), expected)
	}
}

func TestAnAnswerWithoutAnEndIsGivenUp(t *testing.T) {
	path, _ := serveLines(t, func(read line) {
		for more := bytes.Repeat([]byte("x"), 1<<20); ; {
			if _, err := read.from.Write(more); err != nil {
				return
			}
		}
	})
	outcome, err := connect(t, Options{Lines: path}).AgentStopping(ctx, Place{Run: "r"})
	must(t, err)
	if outcome.Problem == nil || !strings.Contains(outcome.Problem.Message, "longer than") {
		t.Errorf("the problem is %v", outcome.Problem)
	}
}

func TestConnectionsOfHTTPAreKept(t *testing.T) {
	socket, listener := listen(t)
	var count atomic.Int64
	server := http.Server{
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) { fmt.Fprint(answer, proceed) }),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				count.Add(1)
			}
		},
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	yard := connect(t, Options{Socket: socket})
	for i := 0; i < 5; i++ {
		outcome, err := yard.AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, code(outcome), "")
	}
	equal(t, count.Load(), int64(1))
}

func TestAnErrorOverHTTPEndsItsConnectionAlone(t *testing.T) {
	socket, listener := listen(t)
	var count, held atomic.Int64
	together := make(chan struct{})
	server := http.Server{
		Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			switch run := request.Header.Get("X-Hookyard-Run"); run {
			case "refused":
				connection, _, err := answer.(http.Hijacker).Hijack()
				if err != nil {
					t.Error(err)
					return
				}
				const body = `{"error":{"code":"too_large","message":"m","retry":"never"}}`
				fmt.Fprintf(connection, "HTTP/1.1 413 Too Large\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
				_ = connection.Close()
				return
			case "held":
				if held.Add(1) == 4 {
					close(together)
				}
				<-together
			}
			fmt.Fprint(answer, proceed)
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				count.Add(1)
			}
		},
	}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	yard := connect(t, Options{Socket: socket})
	asks := func(run, expected string) {
		outcome, err := yard.AgentStopping(ctx, Place{Run: run})
		must(t, err)
		equal(t, code(outcome), expected)
	}
	var group sync.WaitGroup
	for i := 0; i < 4; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			asks("held", "")
		}()
	}
	group.Wait()
	equal(t, count.Load(), int64(4))
	for i := 0; i < 3; i++ {
		asks("refused", "too_large")
		asks("r", "")
	}
	equal(t, count.Load(), int64(4))
	for i := 0; i < 100; i++ {
		asks("refused", "too_large")
		asks("r", "")
	}
}

func TestOptionsThatAreNoneAreRefused(t *testing.T) {
	token := func() (string, error) { return "t", nil }
	for _, options := range []Options{
		{Call: Call{IfDown: Proceed}}, {Call: Call{IfDown: 99}}, {Call: Call{Timeout: -1}}, {Call: Call{RetryFor: -2}},
		{Lines: "a", Socket: "b"}, {Token: token}, {URL: "nowhere"}, {URL: "ftp://host"}, {URL: "http://"},
	} {
		if yard, err := Connect(options); err == nil {
			t.Errorf("%+v: %v", options, yard)
		}
	}
	outcome, err := NewFake(nil, Call{}).With(Call{IfDown: Halt}).With(Call{IfDown: Allow}).AgentStopping(ctx, Place{Run: "r"})
	if err == nil || outcome.Verdict != Block {
		t.Errorf("%v, %v", outcome, err)
	}
}

func TestAnEventThatGoesOnWithoutAVerdictIsNeverSilent(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	yard := connect(t, Options{Socket: "/nowhere/hookyard.sock", Call: Call{IfDown: Allow}})
	for _, expected := range []Verdict{Proceed, Block} {
		outcome, err := yard.With(Call{IfDown: map[Verdict]Verdict{Proceed: Allow, Block: Block}[expected], RetryFor: NoRetry}).AgentStopping(ctx, Place{Run: "r"})
		must(t, err)
		equal(t, outcome.Verdict, expected)
	}
	if text := logged.String(); strings.Count(text, "no daemon answers at /nowhere") != 1 {
		t.Errorf("logged %q", text)
	}
}

func TestAFakeAnswersAsATestSaysAndKeepsTheEvents(t *testing.T) {
	var yard *Fake
	yard = NewFake(func(event Event) (Answer, error) {
		switch command := event.ToolInput.(map[string]any)["command"]; command {
		case "rm":
			return Answer{Verdict: Block, Reason: fmt.Sprint(len(yard.Events()))}, nil
		case "away":
			return Answer{}, errors.New("away")
		case "full":
			return Answer{}, &Problem{Code: "overloaded", Retry: RetrySafe}
		case "later":
			return Answer{Verdict: 99}, nil
		}
		return Answer{Patched: map[Target]json.RawMessage{TargetToolInput: json.RawMessage(`{"command":"ls"}`)}}, nil
	}, Call{IfDown: Allow})
	for _, one := range []struct {
		command, code string
		verdict       Verdict
	}{{"rm", "", Block}, {"dir", "", Proceed}, {"away", "down", Proceed}, {"full", "overloaded", Proceed}, {"later", "unknown_verdict", Block}} {
		outcome, err := yard.BeforeToolDispatch(ctx, Place{Run: "r"}, bash(one.command))
		must(t, err)
		equal(t, code(outcome), one.code)
		equal(t, outcome.Verdict, one.verdict)
		if one.command == "dir" {
			equal(t, string(outcome.Payload), `{"command":"ls"}`)
		}
	}
	equal(t, len(yard.Events()), 5)
	yard.Close()
	outcome, err := yard.AgentStopping(ctx, Place{Run: "r"})
	must(t, err)
	equal(t, code(outcome), "closed")
}

func TestTheZeroValuesLetNothingGoOn(t *testing.T) {
	var outcome Outcome
	equal(t, outcome.Proceeds(), false)
	equal(t, Verdict(0).String(), "")
	equal(t, Verdict(99).String(), "Verdict(99)")
	read := Halt
	must(t, read.UnmarshalText([]byte("quarantine")))
	equal(t, read, Verdict(0))
}

func TestAVerdictStandsWhateverElseALaterVersionSays(t *testing.T) {
	event := Event{Event: KindAgentStopping}
	raw := `{"event":"agent_stopping","verdict":"block","suppress_output":false,"snapshot_version":"x","by":7,
		"hooks":[{"hook":"a","verdict":"quarantine","duration_ms":"1 s","tokens":[]},{"hook":"b","verdict":"block"}]}`
	outcome, problem := readOutcome([]byte(raw), &event, nil)
	if problem != nil {
		t.Fatal(problem)
	}
	equal(t, outcome.Verdict, Block)
	equal(t, outcome.Hooks, []Report{{Hook: "a", Tokens: &Tokens{}}, {Hook: "b", Verdict: Block}})
	written, err := json.Marshal(Report{Hook: "a"})
	must(t, err)
	equal(t, string(written), `{"duration_ms":0,"ended":"","handler":"","hook":"a"}`)
}
