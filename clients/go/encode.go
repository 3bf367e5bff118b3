package hookyard

import (
	"bytes"
	"encoding"
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

var (
	marshaler     = reflect.TypeOf((*json.Marshaler)(nil)).Elem()
	textMarshaler = reflect.TypeOf((*encoding.TextMarshaler)(nil)).Elem()
)

// How deep values are looked at.
const deepest = 1000

// isText says whether all texts in a value are UTF-8, as encoding/json finds them, as far down as it looks. What a
// json.Marshaler writes is JSON already.
func isText(value reflect.Value, depth int) bool {
	depth++
	isPointer := value.Kind() == reflect.Pointer || value.Kind() == reflect.Interface
	if !value.IsValid() || isPointer && value.IsNil() {
		return true
	}
	if _, ok := as(value, marshaler); ok {
		return true
	}
	if text, ok := as(value, textMarshaler); ok {
		return isMarshaledText(text)
	}
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
			if !isKeyText(each.Key()) || !isText(each.Value(), depth) {
				return false
			}
		}
	case reflect.Struct:
		return areFieldsText(value, depth)
	}
	return true
}

// isKeyText: a key that is a string is written as it is, whatever its methods.
func isKeyText(key reflect.Value) bool {
	if key.Kind() == reflect.String {
		return utf8.ValidString(key.String())
	}
	text, ok := as(key, textMarshaler)
	return !ok || isMarshaledText(text)
}

// areFieldsText looks at the fields of embedded structs as well, exported or not: they are fields of the outer one.
func areFieldsText(value reflect.Value, depth int) bool {
	for i := 0; i < value.NumField(); i++ {
		field, of := value.Field(i), value.Type().Field(i)
		tag := of.Tag.Get("json")
		if tag == "-" {
			continue
		}
		look := isText
		if name, _, _ := strings.Cut(tag, ","); of.Anonymous && name == "" {
			if field.Kind() == reflect.Pointer {
				field = field.Elem()
			}
			if field.Kind() == reflect.Struct {
				look = areFieldsText
			}
		}
		if (of.IsExported() || of.Anonymous) && (depth >= deepest || !look(field, depth+1)) {
			return false
		}
	}
	return true
}

// as is a value, or its address, that has the methods of an interface, as encoding/json looks for them.
func as(value reflect.Value, methods reflect.Type) (reflect.Value, bool) {
	if value.Type().Implements(methods) {
		return value, true
	}
	if value.CanAddr() && reflect.PointerTo(value.Type()).Implements(methods) {
		return value.Addr(), true
	}
	return value, false
}

func isMarshaledText(value reflect.Value) bool {
	if !value.CanInterface() {
		return false
	}
	if value.Kind() == reflect.Pointer && value.IsNil() {
		return true
	}
	text, err := value.Interface().(encoding.TextMarshaler).MarshalText()
	return err == nil && utf8.Valid(text)
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
