package hookyard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

const (
	longestAnswer = 64 << 20
	// How long a connection may rest: the daemon ends it after `limits.idle_timeout`.
	longestRest = 30 * time.Second
	readBytes   = 64 << 10
	// Of lines that a daemon has not read. Further events wait.
	mostUnsent = 16 << 20
	// How long a daemon that reads no more has for its answers.
	lastWords = time.Second
)

// linesDoor sends events as lines, many at the same time on one connection.
type linesDoor struct {
	path    string
	mutex   sync.Mutex
	current *linesConnection
	// That one, and those that the daemon drains.
	open     map[*linesConnection]bool
	isClosed bool
}

func newLinesDoor(path string) *linesDoor {
	return &linesDoor{path: path, open: map[*linesConnection]bool{}}
}

func (d *linesDoor) ask(ctx context.Context, sent *sending) (json.RawMessage, *Problem) {
	for {
		connection, problem := d.connection(ctx)
		if problem != nil {
			return nil, problem
		}
		// It may have ended since.
		id, waiting, room := connection.send(sent)
		switch {
		case room != nil:
			select {
			case <-room:
			case <-ctx.Done():
				return nil, cancelled(ctx.Err())
			}
		case waiting != nil:
			select {
			case reply := <-waiting:
				return reply.outcome, reply.problem
			case <-ctx.Done():
				connection.cancel(id)
				// Whoever asked knows more of the context.
				return nil, cancelled(ctx.Err())
			}
		}
	}
}

func (d *linesDoor) connection(ctx context.Context) (*linesConnection, *Problem) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.isClosed {
		return nil, closed()
	}
	if d.current != nil {
		if d.current.takesMore() {
			return d.current, nil
		}
		d.current.end()
		d.current = nil
	}
	if problem := checkSocket(d.path); problem != nil {
		return nil, problem
	}
	var dialer net.Dialer
	stream, err := dialer.DialContext(ctx, "unix", d.path)
	if err != nil {
		return nil, down(d.path, reason(err))
	}
	d.current = &linesConnection{stream: stream.(*net.UnixConn), flights: map[uint64]chan reply{}, isOpen: true, lastUse: time.Now()}
	d.open[d.current] = true
	go d.read(d.current)
	return d.current, nil
}

func (d *linesDoor) read(connection *linesConnection) {
	connection.fail(connection.read())
	d.mutex.Lock()
	delete(d.open, connection)
	d.mutex.Unlock()
}

func (d *linesDoor) close() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.isClosed = true
	for connection := range d.open {
		connection.fail(closed())
	}
}

// reply is what stands in a line of the daemon about an event.
type reply struct {
	outcome json.RawMessage
	problem *Problem
}

// linesConnection is one connection, with the events in flight on it.
type linesConnection struct {
	stream *net.UnixConn
	mutex  sync.Mutex
	// By id. An event that was cancelled has an id until it is answered, and nil: nobody waits for it.
	flights map[uint64]chan reply
	lastID  uint64
	lastUse time.Time
	// Whether it takes further events.
	isOpen bool
	// What the daemon has said about the connection.
	farewell *Problem
	// Lines that are not written yet.
	unsent    []byte
	isWriting bool
	// Closed once there is room for more of them, if somebody waits for it.
	room chan struct{}
}

func (c *linesConnection) takesMore() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.isOpen && (len(c.flights) > 0 || time.Since(c.lastUse) <= longestRest)
}

// send returns where the answer will be; or when to try again, since the daemon has much to read; or neither if the
// connection takes no more events.
func (c *linesConnection) send(sent *sending) (id uint64, waiting <-chan reply, room <-chan struct{}) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if !c.isOpen {
		return 0, nil, nil
	}
	if len(c.unsent) > 0 && len(c.unsent)+len(sent.data) > mostUnsent {
		if c.room == nil {
			c.room = make(chan struct{})
		}
		return 0, nil, c.room
	}
	c.lastID++
	answer := make(chan reply, 1)
	c.flights[c.lastID] = answer
	// The id first: the daemon can tell it even if the line is too long.
	c.unsent = append(c.unsent, `{"id":`...)
	c.unsent = strconv.AppendUint(c.unsent, c.lastID, 10)
	if sent.trace != "" {
		c.unsent = append(append(append(c.unsent, `,"headers":{"traceparent":"`...), sent.trace...), `"}`...)
	}
	c.unsent = append(append(append(c.unsent, `,"event":`...), sent.data...), "}\n"...)
	c.write()
	return c.lastID, answer, nil
}

// takeUnsent puts other lines in the place of those that are unsent, and tells who waits for room.
func (c *linesConnection) takeUnsent(next []byte) []byte {
	unsent := c.unsent
	c.unsent = next
	if c.room != nil {
		close(c.room)
		c.room = nil
	}
	return unsent
}

func (c *linesConnection) cancel(id uint64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.flights[id] == nil {
		return
	}
	c.flights[id] = nil
	if c.isOpen {
		c.unsent = append(strconv.AppendUint(append(c.unsent, `{"cancel":`...), id, 10), "}\n"...)
		c.write()
	}
}

// end sends no more, and reads the answers that are due.
func (c *linesConnection) end() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.isOpen {
		c.isOpen = false
		c.write()
	}
}

// fail ends the connection, and everything in flight on it.
func (c *linesConnection) fail(problem *Problem) {
	c.mutex.Lock()
	c.isOpen = false
	flights := c.flights
	c.flights = nil
	c.takeUnsent(nil)
	c.mutex.Unlock()
	_ = c.stream.Close()
	for _, waiting := range flights {
		if waiting != nil {
			waiting <- reply{problem: problem}
		}
	}
}

// write has what is unsent written by a goroutine of its own, since nobody may wait for a daemon that does not read. What
// comes meanwhile is written together.
func (c *linesConnection) write() {
	if !c.isWriting {
		c.isWriting = true
		go c.flush()
	}
}

func (c *linesConnection) flush() {
	var lines []byte
	for {
		c.mutex.Lock()
		if len(c.unsent) == 0 {
			c.isWriting = false
			isOpen := c.isOpen
			c.mutex.Unlock()
			if !isOpen {
				_ = c.stream.CloseWrite()
			}
			return
		}
		lines = c.takeUnsent(lines[:0])
		c.mutex.Unlock()
		if _, err := c.stream.Write(lines); err != nil {
			// Who reads may find answers, or the end and its reason, but does not wait for long.
			_ = c.stream.SetReadDeadline(time.Now().Add(lastWords))
			c.mutex.Lock()
			c.isOpen = false
			c.takeUnsent(nil)
			c.mutex.Unlock()
			return
		}
		if cap(lines) > readBytes {
			lines = nil
		}
	}
}

// read takes lines until the end, and returns what that means for the events in flight.
func (c *linesConnection) read() *Problem {
	reader := bufio.NewReaderSize(c.stream, readBytes)
	var beginning []byte
	for {
		line, err := reader.ReadSlice('\n')
		if len(beginning)+len(line) > longestAnswer {
			return tooLong()
		}
		if err == nil && beginning == nil {
			if problem := c.take(line); problem != nil {
				return problem
			}
			continue
		}
		beginning = append(beginning, line...)
		switch {
		case err == nil:
			if problem := c.take(beginning); problem != nil {
				return problem
			}
			beginning = nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return c.cut(err)
		}
	}
}

// cut is an end in the middle of events, after the daemon may have said why.
func (c *linesConnection) cut(err error) *Problem {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.farewell != nil {
		return lost(c.farewell.Message, c.farewell)
	}
	if errors.Is(err, io.EOF) {
		return lost("the daemon closed it", nil)
	}
	return lost(reason(err).Error(), err)
}

// take returns a Problem of the connection.
func (c *linesConnection) take(line []byte) *Problem {
	if !utf8.Valid(line) {
		return badAnswer("it is not UTF-8")
	}
	var said struct {
		ID, Outcome, Error json.RawMessage
		Draining           any
	}
	if err := json.Unmarshal(line, &said); err != nil {
		return badAnswer("it is not JSON, or not an object")
	}
	hasError := len(said.Error) > 0 && string(said.Error) != "null"
	if said.Draining == true {
		c.end()
		return nil
	}
	if hasError && (len(said.ID) == 0 || string(said.ID) == "null") {
		c.mutex.Lock()
		c.farewell = daemonError(said.Error, 0)
		c.mutex.Unlock()
		c.end()
		return nil
	}
	answer := reply{outcome: said.Outcome}
	if hasError {
		answer.problem = daemonError(said.Error, 0)
	}
	return c.answer(said.ID, answer)
}

func (c *linesConnection) answer(id json.RawMessage, answer reply) *Problem {
	number, err := strconv.ParseUint(string(id), 10, 64)
	c.mutex.Lock()
	defer c.mutex.Unlock()
	waiting, ok := c.flights[number]
	if err != nil || !ok {
		return badAnswer("its id is that of no event in flight")
	}
	delete(c.flights, number)
	c.lastUse = time.Now()
	if waiting != nil {
		waiting <- answer
	}
	return nil
}

// reason is an error without what its hint says already.
func reason(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}
