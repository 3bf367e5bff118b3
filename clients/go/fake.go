package hookyard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
)

// Fake is a hookyard without a daemon, for the tests of a host: it answers what a test says, and keeps the events.
type Fake struct {
	*Client
	door *fakeDoor
}

// NewFake is a client whose events a function answers, one after the other; nil answers all of them. What the answer does
// not say is that of Proceed. An error in the place of an answer stands for a daemon that is down, unless it is a Problem.
//
//	yard := hookyard.NewFake(func(event hookyard.Event) (hookyard.Answer, error) {
//		return hookyard.Answer{Verdict: hookyard.Block, Reason: "not in a test"}, nil
//	}, hookyard.Call{})
func NewFake(answer func(Event) (Answer, error), call Call) *Fake {
	if call.RetryFor == 0 {
		call.RetryFor = NoRetry
	}
	door := &fakeDoor{answer: answer}
	return &Fake{(&Client{door: door}).With(call), door}
}

// Events are the events so far, as a daemon would have got them: their numbers are a json.Number where they may be any.
func (f *Fake) Events() []Event {
	f.door.mutex.Lock()
	defer f.door.mutex.Unlock()
	return append([]Event(nil), f.door.events...)
}

type fakeDoor struct {
	answer func(Event) (Answer, error)
	// Held while the function answers.
	turn     sync.Mutex
	mutex    sync.Mutex
	events   []Event
	isClosed bool
}

func (d *fakeDoor) close() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.isClosed = true
}

func (d *fakeDoor) ask(_ context.Context, sent *sending) (json.RawMessage, *Problem) {
	d.turn.Lock()
	defer d.turn.Unlock()
	event, err := received(sent.data)
	if err != nil {
		return nil, badEvent(err)
	}
	count, problem := d.keep(event)
	if problem != nil {
		return nil, problem
	}
	answer := Answer{}
	if d.answer != nil {
		if answer, err = d.answer(event); err != nil {
			if errors.As(err, &problem) {
				return nil, problem
			}
			return nil, down("this fake", err)
		}
	}
	answer.Event, answer.SnapshotVersion, answer.DecisionID = event.Event, 1, fmt.Sprintf("fake-%d", count)
	if answer.Verdict == 0 {
		answer.Verdict = Proceed
	}
	if answer.Hooks == nil {
		answer.Hooks = []Report{}
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		return nil, badAnswer(err.Error())
	}
	return raw, nil
}

func (d *fakeDoor) keep(event Event) (int, *Problem) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.isClosed {
		return 0, closed()
	}
	d.events = append(d.events, event)
	return len(d.events), nil
}

// received is an event as a daemon gets it.
func received(data []byte) (Event, error) {
	var event Event
	if err := decode(data, &event); err != nil {
		return event, err
	}
	var all map[string]any
	if err := decode(data, &all); err != nil {
		return event, err
	}
	for name := range all {
		if fields[name] {
			delete(all, name)
		}
	}
	if len(all) > 0 {
		event.Extra = all
	}
	return event, nil
}
