package hookyard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	longestHead = 64 << 10
	// Of more events than this at the same time, connections are not kept.
	mostResting = 64
	// Before a larger event is sent, the daemon is asked whether it takes one.
	largeEvent = 1 << 20
)

// httpDoor sends events over HTTP. Connections are kept for further events.
type httpDoor struct {
	address *url.URL
	shown   string
	token   func() (string, error)
	client  http.Client
	ended   chan struct{}
	once    sync.Once
}

func newSocketDoor(path string) *httpDoor {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		if problem := checkSocket(path); problem != nil {
			return nil, problem
		}
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", path)
	}
	return newHTTPDoor(&url.URL{Scheme: "http", Host: "hookyard", Path: "/v1/events"}, path, nil, dial)
}

func newURLDoor(address *url.URL, token func() (string, error)) *httpDoor {
	var dialer net.Dialer
	return newHTTPDoor(address, address.Host, token, dialer.DialContext)
}

func newHTTPDoor(
	address *url.URL, shown string, token func() (string, error), dial func(context.Context, string, string) (net.Conn, error),
) *httpDoor {
	transport := &http.Transport{
		DialContext: dial, DisableCompression: true, MaxIdleConnsPerHost: mostResting, IdleConnTimeout: longestRest,
		MaxResponseHeaderBytes: longestHead, ExpectContinueTimeout: time.Second,
	}
	// An answer of somewhere else is none.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := http.Client{Transport: transport, CheckRedirect: stay}
	return &httpDoor{address: address, shown: shown, token: token, client: client, ended: make(chan struct{})}
}

func (d *httpDoor) close() {
	d.once.Do(func() { close(d.ended) })
	d.client.CloseIdleConnections()
}

func (d *httpDoor) isClosed() bool {
	select {
	case <-d.ended:
		return true
	default:
		return false
	}
}

func (d *httpDoor) ask(ctx context.Context, sent *sending) (json.RawMessage, *Problem) {
	if d.isClosed() {
		return nil, closed()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-d.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	raw, problem := d.post(ctx, sent)
	if problem != nil && d.isClosed() {
		problem = closed()
	}
	return raw, problem
}

func (d *httpDoor) post(ctx context.Context, sent *sending) (json.RawMessage, *Problem) {
	var connection net.Conn
	var isWritten atomic.Bool
	trace := httptrace.ClientTrace{
		GotConn:      func(got httptrace.GotConnInfo) { connection = got.Conn },
		WroteRequest: func(httptrace.WroteRequestInfo) { isWritten.Store(true) },
	}
	request, err := http.NewRequestWithContext(
		httptrace.WithClientTrace(ctx, &trace), http.MethodPost, d.address.String(), bytes.NewReader(sent.data))
	if err != nil {
		return nil, down(d.shown, err)
	}
	// What is refused then is not read, so that nothing can follow it.
	request.Close = len(sent.data) > largeEvent
	if problem := d.setHeaders(request.Header, sent); problem != nil {
		return nil, problem
	}
	response, err := d.client.Do(request)
	if err != nil {
		var problem *Problem
		if errors.As(err, &problem) {
			return nil, problem
		}
		if connection != nil {
			return nil, lost(reason(err).Error(), err)
		}
		return nil, down(d.shown, reason(err))
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && isWritten.Load() {
		// The daemon may not have read all of the request, and then closes the connection. It rests here as soon as the answer
		// is read: no other event is written to it. (What is not written by now does not rest.)
		_ = connection.SetWriteDeadline(time.Unix(1, 0))
		defer connection.Close()
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer+1))
	if err != nil {
		return nil, lost(reason(err).Error(), err)
	}
	return readResponse(response, body)
}

func (d *httpDoor) setHeaders(header http.Header, sent *sending) *Problem {
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "hookyard-go")
	// What a balancer must know of an event, and reads in no body.
	header.Set("X-Hookyard-Run", encoded(sent.event.RunID))
	if sent.event.EventID != "" {
		header.Set("X-Hookyard-Event-Id", encoded(sent.event.EventID))
	}
	if sent.trace != "" {
		header.Set("Traceparent", sent.trace)
	}
	if len(sent.data) > largeEvent {
		header.Set("Expect", "100-continue")
	}
	if d.token == nil {
		return nil
	}
	token, err := d.token()
	if err != nil {
		return badToken("cannot be read: "+err.Error(), err)
	}
	token = strings.TrimSpace(token)
	for _, letter := range token {
		if letter < ' ' || letter > '~' {
			return badToken("has characters that no token has", nil)
		}
	}
	header.Set("Authorization", "Bearer "+token)
	return nil
}

func readResponse(response *http.Response, body []byte) (json.RawMessage, *Problem) {
	if len(body) > longestAnswer {
		return nil, tooLong()
	}
	if !utf8.Valid(body) {
		return nil, badAnswer("it is not UTF-8")
	}
	if response.StatusCode == http.StatusOK {
		return body, nil
	}
	var said struct{ Error json.RawMessage }
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, badAnswer(fmt.Sprintf("status %d without JSON", response.StatusCode))
	}
	seconds, err := strconv.ParseUint(response.Header.Get("Retry-After"), 10, 32)
	if err != nil {
		seconds = 0
	}
	return nil, daemonError(said.Error, durationOf(float64(seconds)))
}

// encoded is a text as it stands in a header: what is not unreserved in URLs is encoded.
func encoded(text string) string {
	const hex = "0123456789ABCDEF"
	var said strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if isLetter || strings.IndexByte("-._~", c) >= 0 {
			said.WriteByte(c)
		} else {
			said.WriteByte('%')
			said.WriteByte(hex[c>>4])
			said.WriteByte(hex[c&15])
		}
	}
	return said.String()
}
