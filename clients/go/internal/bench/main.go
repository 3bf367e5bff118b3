// Bench measures a round trip over the door of lines beside that of bare lines of JSON to an echo in Go, alternating.
//
//	go run ./internal/bench SOCKET    the socket of lines of a daemon without hooks for the tool `Read`
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hookyard"
)

const (
	warmUp = 3
	rounds = 15
	events = 2000
	atOnce = 64
)

var input = map[string]string{"command": strings.Repeat("x", 200)}

func main() {
	if len(os.Args) == 3 && os.Args[2] == "echo" {
		echo(os.Args[1])
		return
	}
	directory, err := os.MkdirTemp("", "hookyard-bench-")
	check(err)
	defer os.RemoveAll(directory)
	path := directory + "/echo.sock"
	child := exec.Command(os.Args[0], path, "echo")
	check(child.Start())
	defer func() {
		check(child.Process.Kill())
		_ = child.Wait()
	}()
	bare := connect(path)
	yard, err := hookyard.Connect(hookyard.Options{Lines: os.Args[1]})
	check(err)
	defer yard.Close()
	client := func() {
		tool := hookyard.ToolCall{Name: "Read", Input: input}
		outcome, err := yard.BeforeToolDispatch(context.Background(), hookyard.Place{Run: "r"}, tool)
		check(err)
		if outcome.Problem != nil {
			check(outcome.Problem)
		}
	}
	for _, many := range []int{1, atOnce} {
		var floors, clients []float64
		for round := 0; round < warmUp+rounds; round++ {
			floor, client := measure(bare.ask, many), measure(client, many)
			if round >= warmUp {
				floors, clients = append(floors, floor), append(clients, client)
			}
		}
		floor, client := median(floors), median(clients)
		fmt.Printf("%d at a time: %.1f µs; bare lines %.1f µs; ratio %.2f\n", many, client, floor, client/floor)
	}
}

// measure says how many microseconds an event takes.
func measure(ask func(), many int) float64 {
	var left atomic.Int64
	left.Store(events)
	var group sync.WaitGroup
	start := time.Now()
	for i := 0; i < many; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for left.Add(-1) >= 0 {
				ask()
			}
		}()
	}
	group.Wait()
	return float64(time.Since(start).Microseconds()) / events
}

func median(values []float64) float64 {
	sort.Float64s(values)
	return values[len(values)/2]
}

// bareLines is a connection that sends lines and gets them back.
type bareLines struct {
	stream  net.Conn
	mutex   sync.Mutex
	waiting map[uint64]chan answer
	last    uint64
}

type event struct {
	Event   string            `json:"event"`
	Session string            `json:"session_id"`
	Run     string            `json:"run_id"`
	Tool    string            `json:"tool_name"`
	Input   map[string]string `json:"tool_input"`
}

type answer struct {
	ID    uint64 `json:"id"`
	Event event  `json:"event"`
}

func connect(path string) *bareLines {
	for {
		if stream, err := net.Dial("unix", path); err == nil {
			bare := &bareLines{stream: stream, waiting: map[uint64]chan answer{}}
			go bare.read()
			return bare
		}
		time.Sleep(time.Millisecond)
	}
}

func (b *bareLines) read() {
	for lines := bufio.NewScanner(b.stream); lines.Scan(); {
		var read answer
		check(json.Unmarshal(lines.Bytes(), &read))
		b.mutex.Lock()
		b.waiting[read.ID] <- read
		delete(b.waiting, read.ID)
		b.mutex.Unlock()
	}
}

func (b *bareLines) ask() {
	waiting := make(chan answer, 1)
	b.mutex.Lock()
	b.last++
	line, err := json.Marshal(answer{b.last, event{"before_tool_dispatch", "r", "r", "Read", input}})
	check(err)
	b.waiting[b.last] = waiting
	_, err = b.stream.Write(append(line, '\n'))
	b.mutex.Unlock()
	check(err)
	<-waiting
}

// echo reads lines and sends what it has read.
func echo(path string) {
	listener, err := net.Listen("unix", path)
	check(err)
	stream, err := listener.Accept()
	check(err)
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		var read answer
		check(json.Unmarshal(lines.Bytes(), &read))
		line, err := json.Marshal(read)
		check(err)
		_, err = stream.Write(append(line, '\n'))
		check(err)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
