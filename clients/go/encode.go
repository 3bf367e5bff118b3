package hookyard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

var errNotText = errors.New("a text is not UTF-8")

// writer writes an object of JSON. Unlike encoding/json it changes no letter in silence.
type writer struct {
	data []byte
	err  error
	// Where the value of this field is, which hooks may change.
	target   Target
	from, to int
}

// The names of the fields of an event.
var fields = map[string]bool{}

func init() {
	event := reflect.TypeOf(Event{})
	for i := 0; i < event.NumField(); i++ {
		name, _, _ := strings.Cut(event.Field(i).Tag.Get("json"), ",")
		if name != "-" {
			fields[name] = true
		}
	}
}

// bytes is the event as JSON, and the part of it that hooks may change. Returns a Problem if it has no such form.
func (e *Event) bytes() (data, payload json.RawMessage, problem *Problem) {
	w := writer{data: make([]byte, 0, 512), target: targetOf[e.Event]}
	w.data = append(w.data, '{')
	e.write(&w)
	w.data = append(w.data, '}')
	if w.err != nil {
		return nil, nil, badEvent(w.err)
	}
	if w.to > 0 {
		payload = w.data[w.from:w.to:w.to]
	}
	return w.data, payload, nil
}

// MarshalJSON is what is sent.
func (e Event) MarshalJSON() ([]byte, error) {
	data, _, problem := e.bytes()
	if problem != nil {
		return nil, problem
	}
	return data, nil
}

func (w *writer) name(name string) {
	if len(w.data) > 1 {
		w.data = append(w.data, ',')
	}
	w.string(name)
	w.data = append(w.data, ':')
}

func (w *writer) must(name, text string) {
	w.name(name)
	w.string(text)
}

func (w *writer) text(name, text string) {
	if text != "" {
		w.must(name, text)
	}
}

func (w *writer) flag(name string, flag *bool) {
	if flag != nil {
		w.name(name)
		w.data = strconv.AppendBool(w.data, *flag)
	}
}

func isNothing(value any) bool {
	raw, isRaw := value.(json.RawMessage)
	return value == nil || isRaw && len(raw) == 0
}

func (w *writer) value(name string, value any) {
	if isNothing(value) || w.err != nil {
		return
	}
	w.name(name)
	from := len(w.data)
	switch value := value.(type) {
	case string:
		w.string(value)
	case json.RawMessage:
		w.raw(value)
	default:
		w.any(value)
	}
	if Target(name) == w.target {
		w.from, w.to = from, len(w.data)
	}
}

func (w *writer) extra(extra map[string]any) {
	names := make([]string, 0, len(extra))
	for name := range extra {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if fields[name] {
			w.err = fmt.Errorf("`Extra` has %q, which is a field of its own", name)
			return
		}
		value := extra[name]
		if isNothing(value) {
			value = json.RawMessage("null")
		}
		w.value(name, value)
	}
}

// string writes a text as it is, but for what JSON does not have in texts.
func (w *writer) string(text string) {
	const hex = "0123456789abcdef"
	if !utf8.ValidString(text) {
		w.err = errNotText
		return
	}
	w.data = append(w.data, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		w.data = append(w.data, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			w.data = append(w.data, '\\', c)
		case '\n':
			w.data = append(w.data, '\\', 'n')
		default:
			w.data = append(w.data, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	w.data = append(append(w.data, text[start:]...), '"')
}

// raw writes JSON on one line.
func (w *writer) raw(value json.RawMessage) {
	if !utf8.Valid(value) {
		w.err = errNotText
		return
	}
	buffer := bytes.NewBuffer(w.data)
	w.err = json.Compact(buffer, value)
	w.data = buffer.Bytes()
}

func (w *writer) any(value any) {
	from := len(w.data)
	buffer := bytes.NewBuffer(w.data)
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	w.err = encoder.Encode(value)
	w.data = bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	// What encoding/json writes in the place of letters that are none; but others may have written it, too.
	written := w.data[from:]
	if w.err == nil && bytes.Contains(written, []byte(`\ufffd`)) && !isText(reflect.ValueOf(value), 0) || !utf8.Valid(written) {
		w.err = errNotText
	}
}

var marshaler = reflect.TypeOf((*json.Marshaler)(nil)).Elem()

// How deep values are looked at.
const deepest = 1000

// isText says whether all texts in a value are UTF-8, as far down as it looks.
func isText(value reflect.Value, depth int) bool {
	if !value.IsValid() || value.Type().Implements(marshaler) || reflect.PointerTo(value.Type()).Implements(marshaler) {
		return true
	}
	depth++
	switch value.Kind() {
	case reflect.String:
		return utf8.ValidString(value.String())
	case reflect.Pointer, reflect.Interface:
		return depth < deepest && isText(value.Elem(), depth)
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len(); i++ {
			if !isText(value.Index(i), depth) {
				return false
			}
		}
	case reflect.Map:
		for each := value.MapRange(); each.Next(); {
			if !isText(each.Key(), depth) || !isText(each.Value(), depth) {
				return false
			}
		}
	case reflect.Struct:
		for i := 0; i < value.NumField(); i++ {
			field := value.Type().Field(i)
			if field.IsExported() && field.Tag.Get("json") != "-" && !isText(value.Field(i), depth) {
				return false
			}
		}
	}
	return true
}

// decode reads JSON of which no number is changed.
func decode(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("hookyard: %w", err)
	}
	return nil
}
