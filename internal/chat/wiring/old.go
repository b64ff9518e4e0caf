package wiring

import "regexp"

// Old is what a wiring of older data says of when its group answers, in columns that do not exist any more (CH-005).
type Old struct {
	Scope string `json:"response_scope"` // all, triggered, allowlisted
	Rules string `json:"trigger_rules"`  // a pattern; "" = none
}

// Convert returns a wiring with what the old columns of it said; false if they say nothing that is known.
func (o Old) Convert(w Wiring) (Wiring, bool) {
	w.Scope, w.Mode, w.Pattern = All, Mention, ""
	if o.Rules != "" {
		w.Mode, w.Pattern = Pattern, o.Rules
		if _, err := regexp.Compile(o.Rules); err != nil {
			return w, false
		}
	}
	switch o.Scope {
	case "all":
		w.Mode, w.Pattern = Pattern, Always // CH-040
	case "triggered": // CH-041
	case "allowlisted": // CH-042
		w.Scope = Known
	default:
		return w, false
	}
	return w, true
}
