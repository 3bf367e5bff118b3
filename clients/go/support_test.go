package hookyard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"
	"time"
)

const conformance = "../conformance"

// daemon is that of HOOKYARD_PROGRAM, or of the PATH, with the workspace of the conformance suite.
type daemon struct {
	t                         *testing.T
	directory, workspace      string
	lines, socket, url, token string
	child                     *exec.Cmd
}

func newDaemon(t *testing.T) *daemon {
	t.Helper()
	workspace, err := filepath.Abs(conformance + "/workspace")
	must(t, err)
	// Not that of the test, whose path may be too long for a socket.
	directory, err := os.MkdirTemp("", "hookyard-client-")
	must(t, err)
	d := &daemon{t: t, directory: directory, workspace: workspace, token: "0123456789abcdef0123456789abcdef"}
	d.lines, d.socket = directory+"/lines.sock", directory+"/hookyard.sock"
	must(t, os.WriteFile(directory+"/token", []byte(d.token), 0o600))
	must(t, os.WriteFile(directory+"/hookyard.yaml", []byte("trust: off\ndata: null\n"), 0o600))
	t.Cleanup(func() {
		d.kill()
		must(t, os.RemoveAll(directory))
	})
	d.start()
	return d
}

var listening = regexp.MustCompile(`listening on .* and (http:\S+):`)

func (d *daemon) start() {
	d.t.Helper()
	program := os.Getenv("HOOKYARD_PROGRAM")
	if program == "" {
		program = "hookyard"
	}
	d.child = exec.Command(program, "serve", "--config", "hookyard.yaml", "--home", d.directory, "--workspace", d.workspace,
		"--socket", d.socket, "--set", "listen.lines="+d.lines, "--tcp", "127.0.0.1:0", "--token-file", "token",
		"--exit-when-idle", "2m", "--log", "human")
	log, err := os.Create(d.directory + "/log")
	must(d.t, err)
	defer log.Close()
	d.child.Dir, d.child.Stderr = d.directory, log
	must(d.t, d.child.Start())
	until(d.t, func() bool {
		text, err := os.ReadFile(d.directory + "/log")
		must(d.t, err)
		found := listening.FindSubmatch(text)
		if found != nil {
			d.url = string(found[1])
		}
		return found != nil
	})
}

func (d *daemon) kill() {
	if d.child.ProcessState == nil {
		_ = d.child.Process.Kill()
		_ = d.child.Wait()
	}
}

var doors = []string{"lines", "socket", "url"}

// options has the address of a door.
func (d *daemon) options(door string) Options {
	switch door {
	case "lines":
		return Options{Lines: d.lines}
	case "socket":
		return Options{Socket: d.socket}
	}
	return Options{URL: d.url, Token: func() (string, error) { return d.token, nil }}
}

// every runs a test through every door.
func (d *daemon) every(t *testing.T, test func(t *testing.T, yard *Client, door string)) {
	for _, door := range doors {
		t.Run(door, func(t *testing.T) { test(t, connect(t, d.options(door)), door) })
	}
}

func connect(t *testing.T, options Options) *Client {
	t.Helper()
	yard, err := Connect(options)
	must(t, err)
	t.Cleanup(yard.Close)
	return yard
}

// startStub starts the stub of the conformance suite. Returns the directory where it listens.
func startStub(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "hookyard-stub-")
	must(t, err)
	stub := exec.Command("python3", conformance+"/stub.py", directory)
	stub.Stderr = os.Stderr
	stdin, err := stub.StdinPipe()
	must(t, err)
	stdout, err := stub.StdoutPipe()
	must(t, err)
	must(t, stub.Start())
	_, err = io.ReadFull(stdout, make([]byte, len("ready\n")))
	must(t, err)
	t.Cleanup(func() {
		_ = stdin.Close()
		must(t, stub.Wait())
		must(t, os.RemoveAll(directory))
	})
	return directory
}

func cases[T any](t *testing.T, name string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(conformance, name+".json"))
	must(t, err)
	var read []T
	must(t, json.Unmarshal(text, &read))
	return read
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until a condition holds.
func until(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited a minute")
		}
	}
}

func equal(t *testing.T, seen, expected any, about ...any) {
	t.Helper()
	if !reflect.DeepEqual(seen, expected) {
		t.Errorf("%s: %#v, not %#v", fmt.Sprint(about...), seen, expected)
	}
}

// equalJSON compares what two values are as JSON, where 1.0 is 1.
func equalJSON(t *testing.T, seen, expected any, about ...any) {
	t.Helper()
	equal(t, plain(t, seen), plain(t, expected), about...)
}

func plain(t *testing.T, value any) any {
	t.Helper()
	var buffer bytes.Buffer
	must(t, json.NewEncoder(&buffer).Encode(value))
	var read any
	must(t, json.Unmarshal(buffer.Bytes(), &read))
	return read
}

// code is that of the problem, if there is one.
func code(outcome Outcome) string {
	if outcome.Problem == nil {
		return ""
	}
	return outcome.Problem.Code
}

func bash(command string) ToolCall {
	return ToolCall{Name: "Bash", Input: map[string]string{"command": command}}
}
