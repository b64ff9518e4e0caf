package config

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"sallyport/internal/rule/credential"
	"sallyport/internal/rule/policy"
	"sallyport/internal/rule/trust"
)

// Schemas are the names that Schema takes; each is a file docs/schema/<name>.json.
var Schemas = []string{"sallyport", "policy", "repository", "runner", "plan", "state"}

// Schema returns the JSON schema (2020-12) of a file, made from the struct it is read into.
//
// It says all that JSON schema can: keys, types, words, ranges of numbers and lengths. What
// it cannot say is in the descriptions and held by the parser: the range of a size or
// duration written with units, and the inner form of a glob.
func Schema(name string) ([]byte, error) {
	var s *jsonschema.Schema
	var err error
	var t reflect.Type
	switch name {
	case "sallyport":
		s, err = jsonschema.For[Sallyport](options())
		t = reflect.TypeFor[Sallyport]()
		s.Title = "sallyport.yaml of a home: how this host works"
	case "policy":
		s, err = jsonschema.For[Policy](options())
		t = reflect.TypeFor[Policy]()
		s.Title = "policy.yaml of a home: what may land"
	case "repository":
		s, err = jsonschema.For[Repository](options())
		t = reflect.TypeFor[Repository]()
		s.Title = ".sallyport.yaml of a repository: rules that join those of the home, the stricter of both"
	case "runner":
		s, err = jsonschema.For[Runner](options())
		t = reflect.TypeFor[Runner]()
		s.Title = "runner.yaml of a group: how its agent runs"
	case "plan":
		s, err = jsonschema.For[Plan](options())
		t = reflect.TypeFor[Plan]()
		s.Title = "the plan of one change (run --plan): where it may work"
		s.MinProperties = new(1)
	case "state":
		s, err = jsonschema.For[State](options())
		if err != nil {
			return nil, fmt.Errorf("make the schema of %s: %w", name, err)
		}
		s.Title = "front matter of a change's state.md: a copy for people; only execution_mode is read"
		s.Schema = "https://json-schema.org/draft/2020-12/schema"
		raw, err := json.MarshalIndent(s, "", "  ")
		return append(raw, '\n'), err
	default:
		return nil, fmt.Errorf("there is no schema %q", name)
	}
	if err != nil {
		return nil, fmt.Errorf("make the schema of %s: %w", name, err)
	}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	tighten(s, reflect.New(t).Elem())
	raw, err := json.MarshalIndent(s, "", "  ")
	return append(raw, '\n'), err
}

// options describes the words of a file.
func options() *jsonschema.ForOptions {
	o := wordOptions()
	reach, err := jsonschema.For[Reach](o)
	if err != nil {
		panic("the schema of an entry of egress: " + err.Error()) // held by a test
	}
	tighten(reach, reflect.New(reflect.TypeFor[Reach]()).Elem())
	o.TypeSchemas[reflect.TypeFor[Egress]()] = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "string", Enum: []any{Registries}}, {Type: "string", Pattern: hostForm, MaxLength: new(hostMax)}, reach,
	}}
	return o
}

// tables are what the keys of maps must look like.
var tables = map[reflect.Type]func() *jsonschema.Schema{
	reflect.TypeFor[AgentName](): func() *jsonschema.Schema { return either(Agents, acpForm) },
	reflect.TypeFor[Variable]():  func() *jsonschema.Schema { return either(nil, credential.VariableForm) },
	reflect.TypeFor[ToolKind]():  func() *jsonschema.Schema { return either(ToolKinds, "") },
}

// either is one of some words, or of a form.
func either(names []string, form string) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	if len(names) > 0 {
		one := &jsonschema.Schema{}
		for _, n := range names {
			one.Enum = append(one.Enum, n)
		}
		s.AnyOf = append(s.AnyOf, one)
	}
	if form != "" {
		s.AnyOf = append(s.AnyOf, &jsonschema.Schema{Pattern: form})
	}
	return s
}

func wordOptions() *jsonschema.ForOptions {
	text := func(form string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: forms[form], MinLength: new(1)}
	}
	words := func(all []string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range all {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	return &jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[Size]():        {AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: new(1.0)}, text("size")}},
		reflect.TypeFor[Duration]():    text("duration"),
		reflect.TypeFor[Glob]():        {Type: "string", MinLength: new(1), MaxLength: new(policy.GlobBytesMax)},
		reflect.TypeFor[Command]():     {Type: "string", Pattern: `\S`, MaxLength: new(commandBytesMax)},
		reflect.TypeFor[Folder]():      text("folder"),
		reflect.TypeFor[Profile]():     words(Profiles),
		reflect.TypeFor[Executables](): words(executables),
		reflect.TypeFor[Marks]():       words(marks),
		reflect.TypeFor[Self]():        words(selves),
		reflect.TypeFor[Permissions](): words(permitted),
		reflect.TypeFor[Handing]():     words(handings),
		reflect.TypeFor[Sum]():         text("sum"),
		reflect.TypeFor[Name]():        text("name"),
		reflect.TypeFor[ImageName]():   text("image"),
		reflect.TypeFor[Email]():       text("email"),
		reflect.TypeFor[Subject]():     text("subject"),
		reflect.TypeFor[Address]():     {Type: "string", Pattern: `^http://[^\s@#]+$`, MaxLength: new(trust.URLBytesMax)},
		reflect.TypeFor[Trial]():       {Type: "string", Pattern: "^0s$|" + forms["duration"], MinLength: new(1)},

		reflect.TypeFor[KnownAgent]():    words(Agents),
		reflect.TypeFor[Model]():         {Type: "string", Pattern: modelForm},
		reflect.TypeFor[Wire]():          words(wires),
		reflect.TypeFor[Key]():           {Type: "string", Pattern: credential.ReferenceForm},
		reflect.TypeFor[Base]():          {Type: "string", Pattern: `^https?://[^\s@?#]+[^\s@?#/]$`, MaxLength: new(credential.BaseBytesMax)},
		reflect.TypeFor[Argument]():      {Type: "string", MaxLength: new(argumentBytesMax)},
		reflect.TypeFor[VariableValue](): {Type: "string", MaxLength: new(argumentBytesMax)},
		reflect.TypeFor[Permission]():    words(permissions),
		reflect.TypeFor[Money]():         {Type: "number", ExclusiveMinimum: new(0.0), Maximum: new(float64(MoneyMax) / 1e6)},
		reflect.TypeFor[Host]():          {Type: "string", Pattern: hostForm, MaxLength: new(hostMax)},
		reflect.TypeFor[Method]():        words(Methods),
		reflect.TypeFor[URLPath]():       {Type: "string", Pattern: urlPathForm, MaxLength: new(urlPathMax)},

		reflect.TypeFor[RunnerAgent](): words(RunnerAgents()),
		reflect.TypeFor[ToolName]():    {Type: "string", Pattern: toolForm},
		reflect.TypeFor[MountName]():   {Type: "string", Pattern: mountNameForm},

		reflect.TypeFor[ExecutionMode](): words(executionModes),
		reflect.TypeFor[Strategy]():      words(strategies),
		reflect.TypeFor[Promotion]():     words(promotions),
		reflect.TypeFor[Severity]():      words(severities),
		reflect.TypeFor[PauseProtocol](): words(pauseProtocols),
	}}
}

// tighten adds what the tags and the parser ask for beyond types: ranges of numbers,
// lengths of lists, no null in their place.
func tighten(s *jsonschema.Schema, v reflect.Value) {
	all, _ := fields(v)
	for key, f := range all {
		property := s.Properties[key]
		switch t := f.value.Type(); {
		case t.Kind() == reflect.Struct:
			tighten(property, f.value)
		case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Bool:
			property.Type, property.Types = "boolean", nil
		case t.Kind() == reflect.Pointer:
			property.Type, property.Types = "string", nil
		case t.Kind() == reflect.Slice:
			switch {
			case t.Elem() == reflect.TypeFor[Egress](): // it is whole already
			case t.Elem().Kind() == reflect.Struct:
				tighten(property.Items, reflect.New(t.Elem()).Elem())
			case t.Elem().Kind() == reflect.Int:
				property.Items.Minimum = new(float64(limit(t.Elem(), f.tag.Get("min"))))
				property.Items.Maximum = new(float64(limit(t.Elem(), f.tag.Get("max"))))
			}
			property.Type, property.Types = "array", nil
			property.MaxItems = new(listMax)
		case t.Kind() == reflect.Map:
			if t.Elem().Kind() == reflect.Struct {
				tighten(property.AdditionalProperties, reflect.New(t.Elem()).Elem())
			}
			property.PropertyNames, property.MaxProperties = tables[t.Key()](), new(listMax)
		case t.Kind() == reflect.Int:
			property.Minimum = new(float64(limit(t, f.tag.Get("min"))))
			property.Maximum = new(float64(limit(t, f.tag.Get("max"))))
		case t == reflect.TypeFor[Size]():
			property.AnyOf[0].Minimum = new(float64(limit(t, f.tag.Get("min"))))
			property.AnyOf[0].Maximum = new(float64(limit(t, f.tag.Get("max"))))
		}
	}
}
