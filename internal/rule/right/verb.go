package right

import (
	"maps"
	"slices"

	"sallyport/internal/base/problem"
)

// Scope says of what somebody needs a role to ask for something.
type Scope string

const (
	OfHome  Scope = "home"  // of the home
	OfGroup Scope = "group" // of the group that it is about
	OfOwn   Scope = "own"   // of any group, and only what is their own is shown or touched
)

// Verb is what it takes to ask for one thing.
type Verb struct {
	Least Role
	Scope Scope
	Self  bool // as a person of the home: it is not enough to be root
	Asked Role // in the host's own chat, of any group: whoever decides is asked there; "" = it is nothing else there
}

// hostChat stands for a group where one talks with the host itself.
const hostChat = "host"

// in is what a verb takes of the group that it is about.
func (v Verb) in(group string) Verb {
	if group == hostChat && v.Asked != "" {
		return Verb{Least: v.Asked, Scope: OfOwn, Self: v.Self}
	}
	if v.Scope == OfGroup && group == "" { // it is about none, so it is the home's
		return Verb{Least: Owner, Scope: OfHome, Self: v.Self}
	}
	return v
}

var (
	owners   = Verb{Least: Owner, Scope: OfHome}
	oneself  = Verb{Least: Owner, Scope: OfHome, Self: true}
	members  = Verb{Least: Member, Scope: OfGroup, Asked: GroupAdmin}
	theirs   = Verb{Least: Member, Scope: OfOwn}
	deciders = Verb{Least: GroupAdmin, Scope: OfOwn}
	asked    = Verb{Least: GroupAdmin, Scope: OfGroup} // about the card of a change of the group
)

// verbs says of everything that can be asked at a door what it takes. What does not stand here is nobody's.
var verbs = map[string]Verb{
	"GET /v1/daemon":       theirs,
	"POST /v1/daemon/stop": owners,
	"GET /v1/metrics":      owners,
	"GET /v1/doctor":       owners,
	"GET /v1/stats":        owners,
	"GET /v1/storage":      owners,
	"POST /v1/gc":          owners,
	"GET /v1/secrets":      owners,

	"GET /v1/repository":             owners,
	"GET /v1/targets":                owners,
	"POST /v1/targets/trust":         owners,
	"POST /v1/targets/distrust":      owners,
	"GET /v1/agents":                 owners,
	"POST /v1/agents/test":           owners,
	"GET /v1/wanted":                 owners,
	"POST /v1/changes/{change}/keys": owners,

	"GET /v1/groups":                       theirs,
	"GET /v1/groups/{group}":               owners,
	"POST /v1/groups":                      owners,
	"POST /v1/groups/{group}/commit":       owners,
	"POST /v1/groups/{group}/refresh":      owners,
	"POST /v1/groups/{group}/memory/clear": owners,
	"POST /v1/home":                        owners,
	"POST /v1/home/upgrade":                owners,

	"GET /v1/people":                  deciders,
	"GET /v1/people/{person}":         owners,
	"POST /v1/people":                 oneself,
	"POST /v1/people/{person}/link":   oneself,
	"POST /v1/people/{person}/role":   {Least: GroupAdmin, Scope: OfOwn, Self: true},
	"POST /v1/people/{person}/remove": oneself,
	"POST /v1/accounts/unlink":        oneself,

	"POST /v1/changes":                          owners,
	"GET /v1/changes":                           owners,
	"GET /v1/changes/{change}":                  owners,
	"GET /v1/changes/{change}/watch":            owners,
	"GET /v1/changes/{change}/diff":             asked,
	"GET /v1/changes/{change}/export":           owners,
	"POST /v1/changes/{change}/cancel":          owners,
	"POST /v1/changes/{change}/redo":            owners,
	"POST /v1/changes/{change}/branch":          owners,
	"POST /v1/changes/{change}/confirm":         owners,
	"POST /v1/changes/{change}/rollback":        owners,
	"POST /v1/changes/{change}/promote":         asked,
	"POST /v1/changes/{change}/pause":           owners,
	"POST /v1/changes/{change}/resume":          owners,
	"POST /v1/changes/{change}/tell":            owners,
	"POST /v1/changes/{change}/put-back":        owners,
	"POST /v1/changes/{change}/shell":           owners,
	"GET /v1/changes/{change}/transcript":       owners,
	"POST /v1/sessions/{session}/resume":        owners,
	"POST /v1/changes/{change}/checkpoint":      owners,
	"GET /v1/changes/{change}/checkpoints":      owners,
	"GET /v1/checkpoints/{checkpoint}":          owners,
	"GET /v1/checkpoints/{checkpoint}/diff":     owners,
	"POST /v1/checkpoints/{checkpoint}/export":  owners,
	"POST /v1/checkpoints/{checkpoint}/restore": owners,

	"POST /v1/groups/{group}/say":       members,
	"POST /v1/cards/{card}/answer":      theirs,
	"GET /v1/groups/{group}/watch":      members,
	"GET /v1/chats":                     theirs,
	"GET /v1/chats/{chat}":              theirs,
	"POST /v1/chats/{chat}/stop":        owners,
	"POST /v1/chats/{chat}/forget":      owners,
	"GET /v1/chats/{chat}/transcript":   owners,
	"GET /v1/messages":                  theirs,
	"GET /v1/messages/{message}":        theirs,
	"GET /v1/drops":                     owners,
	"POST /v1/messages/{message}/retry": owners,
	"POST /v1/groups/{group}/tasks":     owners,
	"GET /v1/tasks":                     owners,
	"POST /v1/tasks/{task}/remove":      owners,

	"GET /v1/channels":                             owners,
	"POST /v1/channels":                            owners,
	"GET /v1/channels/{channel}":                   owners,
	"POST /v1/channels/{channel}/remove":           owners,
	"GET /v1/conversations":                        deciders,
	"POST /v1/conversations/{conversation}/wire":   owners,
	"POST /v1/conversations/{conversation}/unwire": owners,
	"POST /v1/conversations/{conversation}/policy": deciders,
	"POST /v1/wirings/import":                      owners,

	"GET /v1/approvals":                     owners,
	"GET /v1/approvals/{question}":          asked,
	"POST /v1/approvals/{approval}/approve": asked,
	"POST /v1/approvals/{approval}/refuse":  asked,
	"POST /v1/approvals/{approval}/rework":  asked,
	"POST /v1/approvals/{card}/answer":      owners,
	"GET /v1/audit":                         owners,
	"GET /v1/audit/verify":                  owners,
}

// Verbs are all that have a row.
func Verbs() []string { return slices.Collect(maps.Keys(verbs)) }

// Needed returns what it takes to ask for a verb; false for one that nobody may ask for.
func Needed(verb string) (Verb, bool) {
	v, ok := verbs[verb]
	return v, ok
}

// Asker is who asks at a door, as they are at this moment.
type Asker struct {
	Held []Held
	Root bool // the machine's own user, who reads the home's disk anyway
}

// covers reports whether a role gives what another gives, in a group or in the home ("").
func (h Held) covers(need Role, group string) bool {
	switch h.Role {
	case Owner:
		return true
	case GlobalAdmin:
		return need != Owner
	case GroupAdmin:
		return (need == GroupAdmin || need == Member) && group != "" && h.Group == group
	case Member:
		return need == Member && group != "" && h.Group == group
	}
	return false
}

// Decides reports whether somebody decides about a group: who changes it, and who talks there; "" is what is of no group.
func Decides(held []Held, group string) bool {
	return slices.ContainsFunc(held, func(h Held) bool { return h.covers(GroupAdmin, group) })
}

// May returns nil if somebody may ask for a verb: in the group that it is about, which is "" of one that is about none. Of what is their own
// a door shows them no more than that.
//
// Errors: problem.Denied.
func May(who Asker, verb, group string) error {
	v, ok := Needed(verb)
	v = v.in(group)
	switch {
	case !ok:
		return problem.Errorf(problem.Denied, "sallyport --help", "nobody may ask for %s", verb)
	case who.Root && !v.Self:
		return nil
	case slices.ContainsFunc(who.Held, func(h Held) bool {
		in := group
		if v.Scope == OfOwn {
			in = h.Group
		}
		return h.covers(v.Least, in)
	}):
		return nil
	case v.Least == Owner:
		return problem.Errorf(problem.Denied, "sallyport chat --help", "only the owner of this home may ask for that")
	case len(who.Held) == 0:
		return problem.Errorf(problem.Denied, "sallyport chat --help", "this home does not know you, or you have no role in it")
	case group == hostChat:
		return problem.Errorf(problem.Denied, "sallyport group list", "nothing is asked of you: whoever decides about a group is asked there")
	case v.Least == GroupAdmin:
		return problem.Errorf(problem.Denied, "sallyport chat --help", "only who decides about a group may ask for that")
	}
	return problem.Errorf(problem.Denied, "sallyport group list", "you have no role in the group %q", group)
}
