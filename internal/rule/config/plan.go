package config

import (
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
)

// Plan is a plan's file: where one change may work. It joins --allow and --forbid.
type Plan struct {
	AllowedAreas   []Glob `json:"allowed_areas,omitempty" jsonschema:"Globs; the change may touch these paths only. Empty: every path that the rules allow."`
	ForbiddenAreas []Glob `json:"forbidden_areas,omitempty" jsonschema:"Globs; the change may not touch these paths."`
}

// ParsePlan reads a plan; name stands in messages. Errors: problem.Usage. A plan that names no
// area is refused: it would allow what it was written to bound.
func ParsePlan(name string, data []byte) (Plan, error) {
	var p Plan
	if err := parse(source{name, edit(name), true}, data, &p); err != nil {
		return Plan{}, err
	}
	if len(p.AllowedAreas)+len(p.ForbiddenAreas) == 0 {
		return Plan{}, problem.Errorf(problem.Usage, edit(name),
			"%s names no allowed_areas and no forbidden_areas; a plan needs one of the two", inert.Path(name))
	}
	return p, nil
}

// LoadPlan reads a plan's file. Errors: problem.Usage if it is not there or refused; problem.Unavailable if it cannot be read.
func LoadPlan(name string) (Plan, error) {
	data, _, err := read(name)
	if err != nil {
		return Plan{}, err
	}
	if data == nil {
		return Plan{}, problem.Errorf(problem.Usage, edit(name), "the plan %s does not exist", inert.Path(name))
	}
	return ParsePlan(name, data)
}
