package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"sallyport/internal/base/pattern"
	"sallyport/internal/base/yamltext"
)

// listMax bounds every list of a file.
const listMax = 256

// finding is one thing that is wrong with a file.
type finding struct {
	line, column int
	path         string // dotted; "" = the file as a whole
	text         string
}

// binder sets a struct's fields from a syntax tree and notes all that does not fit.
type binder struct{ found []finding }

func (b *binder) note(at ast.Node, path, format string, args ...any) {
	f := finding{line: 1, column: 1, path: path, text: fmt.Sprintf(format, args...)}
	if at != nil {
		if tk := at.GetToken(); tk != nil && tk.Position != nil {
			f.line, f.column = tk.Position.Line, tk.Position.Column
		}
	}
	b.found = append(b.found, f)
}

// field is one key of a struct.
type field struct {
	value reflect.Value
	tag   reflect.StructTag
}

// fields returns a struct's fields by key, embedded ones included, and the keys in order.
func fields(v reflect.Value) (map[string]field, []string) {
	all := map[string]field{}
	var keys []string
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			inner, more := fields(v.Field(i))
			for k, x := range inner {
				all[k] = x
			}
			keys = append(keys, more...)
			continue
		}
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if key == "-" {
			continue
		}
		all[key] = field{v.Field(i), f.Tag}
		keys = append(keys, key)
	}
	return all, keys
}

func (b *binder) structure(n ast.Node, path string, v reflect.Value) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		b.note(n, path, "it must hold keys, and is %s", kind(n))
		return
	}
	all, keys := fields(v)
	for _, entry := range mapping.Values {
		key, ok := entry.Key.(*ast.StringNode)
		if !ok {
			b.note(entry.Key, path, "a key must be a plain word, and this is %s", kind(entry.Key))
			continue
		}
		at := key.Value
		if path != "" {
			at = path + "." + at
		}
		f, known := all[key.Value]
		if !known {
			b.note(key, at, "there is no such key; the keys here are %s", strings.Join(keys, ", "))
			continue
		}
		b.value(entry.Key, entry.Value, at, f)
	}
	if w, ok := v.Addr().Interface().(fitting); ok && !b.noted(path) {
		if err := w.fits(); err != nil {
			b.note(n, path, "%v", err)
		}
	}
}

// fitting is a group of keys that must fit together; the error is one clause. It is asked where each key fits.
type fitting interface{ fits() error }

// noted reports whether something is wrong with a group, or below it.
func (b *binder) noted(path string) bool {
	return slices.ContainsFunc(b.found, func(f finding) bool {
		return path == "" || f.path == path || strings.HasPrefix(f.path, path+".") || strings.HasPrefix(f.path, path+"[")
	})
}

// only sets the field of one key of a mapping, and passes over every other.
func (b *binder) only(mapping *ast.MappingNode, key string, into any) {
	all, _ := fields(reflect.ValueOf(into).Elem())
	for _, entry := range mapping.Values {
		if k, ok := entry.Key.(*ast.StringNode); ok && k.Value == key {
			b.value(entry.Key, entry.Value, key, all[key])
		}
	}
}

// value sets one field. A refusal points at the value, or at the key if there is none.
func (b *binder) value(key, n ast.Node, path string, f field) {
	if n == nil || n.Type() == ast.NullType {
		b.note(key, path, "it has no value; leave the key out, or write [] for an empty list")
		return
	}
	v := f.value
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	_, group := n.(*ast.MappingNode)
	if w, ok := v.Addr().Interface().(word); ok && !(group && v.Kind() == reflect.Struct) { // some structs have a short form
		b.word(n, path, w)
		b.bounds(n, path, v, f.tag)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		b.structure(n, path, v)
	case reflect.Slice:
		b.list(n, path, f)
	case reflect.Map:
		b.table(n, path, f)
	case reflect.Bool:
		if x, ok := n.(*ast.BoolNode); ok {
			v.SetBool(x.Value)
			return
		}
		b.note(n, path, "it must be true or false, and is %s", kind(n))
	case reflect.Int:
		b.integer(n, path, v)
		b.bounds(n, path, v, f.tag)
	default:
		panic("a field of package config has the kind " + v.Kind().String()) // held by a test
	}
}

func (b *binder) list(n ast.Node, path string, f field) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		b.note(n, path, "it must be a list, and is %s", kind(n))
		return
	}
	if len(sequence.Values) > listMax {
		b.note(n, path, "it has %d entries; %d is the limit", len(sequence.Values), listMax)
		return
	}
	out := reflect.MakeSlice(f.value.Type(), len(sequence.Values), len(sequence.Values))
	for i, item := range sequence.Values {
		b.value(n, item, fmt.Sprintf("%s[%d]", path, i), field{out.Index(i), f.tag})
	}
	f.value.Set(out)
}

// table sets a map, whose keys are words too.
func (b *binder) table(n ast.Node, path string, f field) {
	mapping, ok := n.(*ast.MappingNode)
	if !ok {
		b.note(n, path, "it must hold keys, and is %s", kind(n))
		return
	}
	if len(mapping.Values) > listMax {
		b.note(n, path, "it has %d entries; %d is the limit", len(mapping.Values), listMax)
		return
	}
	t := f.value.Type()
	out := reflect.MakeMapWithSize(t, len(mapping.Values))
	for _, entry := range mapping.Values {
		key, ok := entry.Key.(*ast.StringNode)
		if !ok {
			b.note(entry.Key, path, "a key must be a plain word, and this is %s", kind(entry.Key))
			continue
		}
		at := path + "." + key.Value
		name, value := reflect.New(t.Key()), reflect.New(t.Elem()).Elem()
		if err := name.Interface().(word).parse(key.Value); err != nil { // held by a test: the keys of every table are words
			b.note(key, at, "%v", err)
			continue
		}
		b.value(entry.Key, entry.Value, at, field{value, f.tag})
		out.SetMapIndex(name.Elem(), value)
	}
	f.value.Set(out)
}

// plainInteger is what may be written as a number: decimal, as it will be read by a person.
var plainInteger = pattern.Of(`^(0|-?[1-9][0-9]{0,17})$`)

func (b *binder) integer(n ast.Node, path string, v reflect.Value) {
	x, ok := n.(*ast.IntegerNode)
	if !ok || !plainInteger().MatchString(x.Token.Value) {
		b.note(n, path, "it must be a whole decimal number, and is %s", kind(n))
		return
	}
	i, _ := strconv.ParseInt(x.Token.Value, 10, 64) // so few digits always fit
	v.SetInt(i)
}

func (b *binder) word(n ast.Node, path string, w word) {
	text := ""
	if _, ok := w.(number); ok {
		switch n.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			text = n.GetToken().Value
		default:
			b.note(n, path, "it must be a number, and is %s", kind(n))
			return
		}
		if err := w.parse(text); err != nil {
			b.note(n, path, "%v", err)
		}
		return
	}
	what := kind(n)
	if _, ok := w.(hidden); ok && strings.HasPrefix(what, "the number") {
		what = "a number"
	}
	switch x := n.(type) {
	case *ast.StringNode:
		text = x.Value
	case *ast.LiteralNode:
		text = x.Value.Value
	case *ast.IntegerNode:
		if _, ok := w.(*Size); !ok || !plainInteger().MatchString(x.Token.Value) {
			b.note(n, path, "it must be text, and is %s; put it in quotes", what)
			return
		}
		text = x.Token.Value
	default:
		b.note(n, path, "it must be text, and is %s", what)
		return
	}
	if strings.ContainsRune(text, 0) {
		b.note(n, path, "it holds a zero byte")
		return
	}
	if err := w.parse(text); err != nil {
		b.note(n, path, "%v", err)
	}
}

// bounds holds a number, size or duration to its min and max tags. A value that was
// refused is zero and is not judged twice.
func (b *binder) bounds(n ast.Node, path string, v reflect.Value, tag reflect.StructTag) {
	if tag.Get("min") == "" || slices.ContainsFunc(b.found, func(f finding) bool { return f.path == path }) {
		return
	}
	if low, high := limit(v.Type(), tag.Get("min")), limit(v.Type(), tag.Get("max")); v.Int() < low || v.Int() > high {
		b.note(n, path, "it must lie between %s and %s", tag.Get("min"), tag.Get("max"))
	}
}

// limit reads a tag in the language of the field's type.
func limit(t reflect.Type, text string) int64 {
	v := reflect.New(t)
	if w, ok := v.Interface().(word); ok {
		if err := w.parse(text); err != nil {
			panic("a tag of package config: " + err.Error()) // held by a test
		}
		return v.Elem().Int()
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic("a tag of package config: " + err.Error())
	}
	return i
}

// number is a word that is written as a number, hidden one that is never told.
type (
	number interface{ number() }
	hidden interface{ hidden() }
)

// kind says what a node is, in words.
func kind(n ast.Node) string {
	switch n.(type) {
	case nil:
		return "nothing"
	case *ast.MappingNode:
		return "a group of keys"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "the number " + n.GetToken().Value
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return "something else"
}

// foreign walks a document and notes what makes YAML mean something else than it shows.
type foreign struct{ b *binder }

func (f foreign) Visit(n ast.Node) ast.Visitor {
	if what := yamltext.Foreign(n); what != "" {
		f.b.note(n, "", "%s does not work here; write the value itself, in quotes if it begins so", what)
		return nil
	}
	return f
}
