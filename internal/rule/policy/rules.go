package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// Defaults of sizes.
const (
	FileBytesMaxDefault   = 64 << 20
	ChangeBytesMaxDefault = 1 << 30 // SV-066
	PathsMaxDefault       = 100_000
)

// Default returns the rules of a home without a policy.yaml.
//
// What holds the host's state or somebody's environment is protected (SM-073).
func Default() Rules {
	return Rules{
		ProtectedAreas: []string{".state", "**/.env", "**/.env.*"},
		Executables:    Review,
		Marks:          MarksAsk,
		FileBytesMax:   FileBytesMaxDefault,
		ChangeBytesMax: ChangeBytesMaxDefault,
		PathsMax:       PathsMaxDefault,
	}
}

// Silent returns rules without an opinion: Merge(r, Silent()) is r.
func Silent() Rules { return Rules{AllowSymlinks: true} }

// filled replaces what means "the default" by it.
func (r Rules) filled() Rules {
	if r.Executables == "" {
		r.Executables = Review
	}
	if r.Marks == "" {
		r.Marks = MarksAsk
	}
	if r.FileBytesMax == 0 {
		r.FileBytesMax = FileBytesMaxDefault
	}
	if r.ChangeBytesMax == 0 {
		r.ChangeBytesMax = ChangeBytesMaxDefault
	}
	if r.PathsMax == 0 {
		r.PathsMax = PathsMaxDefault
	}
	return r
}

// Merge returns the stricter of both in everything: a path must be allowed by both and
// forbidden by neither, the smaller size holds. A size of zero in repo is no opinion.
// Where secrets may be kept, what is none, and what is run unasked is the home's to say.
func Merge(home, repo Rules) Rules {
	home = home.filled()
	out := home
	out.AllowedAreas, out.AllowedAlso = both(
		lists(home.AllowedAreas, home.AllowedAlso), lists(repo.AllowedAreas, repo.AllowedAlso))
	out.ForbiddenAreas = union(home.ForbiddenAreas, repo.ForbiddenAreas)
	out.ProtectedAreas = union(home.ProtectedAreas, repo.ProtectedAreas)
	out.AllowSymlinks = home.AllowSymlinks && repo.AllowSymlinks
	out.mergeExecutables(home, repo)
	out.FileBytesMax = smaller(home.FileBytesMax, repo.FileBytesMax)
	out.ChangeBytesMax = smaller(home.ChangeBytesMax, repo.ChangeBytesMax)
	out.PathsMax = smaller(home.PathsMax, repo.PathsMax)
	return out
}

// mergeExecutables: the exceptions of a side count only where that side refuses.
func (r *Rules) mergeExecutables(home, repo Rules) {
	var all [][]string
	for _, side := range []Rules{home, repo} {
		if side.Executables != "" && side.Executables != Review { // an unknown word is refused by Validate
			r.Executables = side.Executables
			all = append(append(all, side.AllowExecutable), side.AllowExecutableAlso...)
		}
	}
	if len(all) > 0 {
		r.AllowExecutable, r.AllowExecutableAlso = all[0], all[1:]
	}
}

// lists puts a list and its companions together; an empty first list allows everything and is none.
func lists(first []string, also [][]string) [][]string {
	if len(first) == 0 {
		return also
	}
	return append([][]string{first}, also...)
}

func both(a, b [][]string) ([]string, [][]string) {
	all := append(slices.Clone(a), b...)
	if len(all) == 0 {
		return nil, nil
	}
	return all[0], all[1:]
}

func union(a, b []string) []string { return sorted(append(slices.Clone(a), b...)) }

// smaller returns the smaller of a and b, a if b is zero.
func smaller[N int | int64](a, b N) N {
	if b == 0 {
		return a
	}
	return min(a, b)
}

// sorted returns a list in order without repetitions; never nil.
func sorted(list []string) []string {
	out := append([]string{}, list...)
	slices.Sort(out)
	return slices.Compact(out)
}

func sortedLists(all [][]string) [][]string {
	out := [][]string{}
	for _, l := range all {
		out = append(out, sorted(l))
	}
	slices.SortFunc(out, slices.Compare[[]string])
	return slices.CompactFunc(out, slices.Equal[[]string])
}

// Digest names rules and plan: SHA-256, in hex, over their canonical JSON. Rules that
// mean the same in another order have the same digest.
func Digest(rules Rules, plan Plan) string {
	rules = rules.filled()
	executable := [][]string{}
	if rules.Executables != Review {
		executable = append([][]string{rules.AllowExecutable}, rules.AllowExecutableAlso...)
	}
	raw, err := json.Marshal(struct {
		Format      string      `json:"format"` // raised when the rules built into Validate change
		Allowed     [][]string  `json:"allowed"`
		Forbidden   []string    `json:"forbidden"`
		Protected   []string    `json:"protected"`
		Symlinks    bool        `json:"symlinks"`
		Executables Executables `json:"executables"`
		Executable  [][]string  `json:"executable"`
		FileBytes   int64       `json:"file_bytes"`
		ChangeBytes int64       `json:"change_bytes"`
		Paths       int         `json:"paths"`
		SecretPaths []string    `json:"secret_paths"`
		Secrets     []string    `json:"secrets"`
		Marks       Marks       `json:"marks"`
		PlanAllow   []string    `json:"plan_allow"`
		PlanForbid  []string    `json:"plan_forbid"`
	}{
		Format:      "sallyport policy 3",
		Allowed:     sortedLists(lists(rules.AllowedAreas, rules.AllowedAlso)),
		Forbidden:   sorted(rules.ForbiddenAreas),
		Protected:   sorted(rules.ProtectedAreas),
		Symlinks:    rules.AllowSymlinks,
		Executables: rules.Executables,
		Executable:  sortedLists(executable),
		FileBytes:   rules.FileBytesMax,
		ChangeBytes: rules.ChangeBytesMax,
		Paths:       rules.PathsMax,
		SecretPaths: sorted(rules.AllowSecretPaths),
		Secrets:     sorted(rules.AllowSecrets),
		Marks:       rules.Marks,
		PlanAllow:   sorted(plan.Allow),
		PlanForbid:  sorted(plan.Forbid),
	})
	if err != nil {
		panic("rules cannot be marshalled: " + err.Error()) // strings, numbers and booleans always can
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}
