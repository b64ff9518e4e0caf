package right

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/internal/base/id"
	"sallyport/internal/base/problem"
)

// Role is what somebody is in a home.
type Role string

const (
	Owner       Role = "owner"        // who made the home
	GlobalAdmin Role = "global_admin" // of every group
	GroupAdmin  Role = "group_admin"  // of one group
	Member      Role = "member"       // of one group; talks, and decides nothing
)

// Held is a role that somebody has.
type Held struct {
	Role  Role
	Group string // of GroupAdmin and Member
}

// Words is a role in a sentence.
func (h Held) Words() string {
	if h.Group == "" {
		return string(h.Role)
	}
	return string(h.Role) + " of " + h.Group
}

// Person is somebody of a home, as they are at the moment of use.
type Person struct {
	ID        id.Person
	Held      []Held
	Reachable bool // a question comes to them, by some way
}

// Of reports whether somebody belongs to a group: they talk with it, and answer what its agent asks.
func (p Person) Of(group string) bool {
	return p.ID != "" && slices.ContainsFunc(p.Held, func(h Held) bool { return h.covers(Member, group) })
}

// Rules are what the policy says of approvals (SM-912).
type Rules struct {
	People   int           // how many have to say yes; 0 = 1
	NoSelf   bool          // who asks for a change does not approve it
	CoolDown time.Duration // before one person alone approves a change of the host; 0 = CoolDownDefault
}

// Words say how what a group asks for is approved.
func (r Rules) Words() string {
	says := []string{"one person approves what a group asks for"}
	if r.People > 1 {
		says = []string{fmt.Sprintf("%d people approve what a group asks for", r.People)}
	}
	if r.NoSelf {
		says = append(says, "nobody approves what they asked for")
	}
	if r.People < 2 {
		says = append(says, fmt.Sprintf("a yes to a change of the host counts after %s", cmp.Or(max(r.CoolDown, 0), CoolDownDefault)))
	}
	return strings.Join(says, "; ")
}

const (
	// CoolDownDefault is how long an owner thinks about a change of the host that nobody else approves.
	CoolDownDefault = time.Minute
	// ConfirmHost are the words that a yes to a change of the host is typed with (SM-084).
	ConfirmHost = "CONFIRM HOST"
)

// Asked is what is to be approved.
type Asked struct {
	Class  Class
	Group  string   // whose agent asked for it
	Wisher string   // who asked for it: a person's id, or a stranger's identity; "" = nobody knows
	Others []string // who else may have: the agent that named the wisher answered them, too
	People []Person
	Rules  Rules
	Mend   string // the command that opens the policy; "" = none is named
}

// Need is who has to approve, and how.
type Need struct {
	Ask   []id.Person   // whom the card goes to
	May   []id.Person   // whose yes counts: any of them decides, asked or not
	No    []id.Person   // whose no ends it: those, and whom the policy keeps from saying yes to what they asked for
	Must  []id.Person   // one yes is of theirs; nil = it need not be
	Yeses int           // of as many people; 0 = as many as when it was asked
	Typed string        // words that a yes is typed with; "" = none
	Think time.Duration // from the moment it is asked, before a yes counts
}

// Only is that any one of these decides.
func Only(all ...id.Person) Need { return Need{May: all, No: all} }

// rung is one step of the ladder on which a change goes up to somebody who is there.
type rung struct {
	role  Role
	group bool // of the group alone whose change it is
}

// ladder says to whom a change goes, the first first (SM-080, SM-082). Who stands higher may decide as well.
var ladder = map[Class][]rung{
	Group:    {{GroupAdmin, true}, {GlobalAdmin, false}, {Owner, false}},
	Host:     {{Owner, false}},
	Combined: {{Owner, false}},
}

// seconds are who may give the other yes to a change of the host where the policy wants two.
var seconds = rung{GlobalAdmin, false}

// places says to whom a question about a place goes that no group hears (CH-060); who talks with a group is asked as a change of it is.
var places = []rung{{Owner, false}, {GlobalAdmin, false}}

// Admission says who decides about who talks with a group, and of "" about which group hears a place: all of the first rung on which anybody
// can be reached are asked.
func Admission(group string, people []Person) (n Need) {
	rungs := ladder[Group]
	if group == "" {
		rungs = places
	}
	for _, r := range rungs {
		asked := len(n.Ask) > 0
		for _, p := range (Asked{Group: group, People: people}).on(r) {
			n.May, n.No = append(n.May, p.ID), append(n.No, p.ID)
			if p.Reachable && !asked {
				n.Ask = append(n.Ask, p.ID)
			}
		}
	}
	return n
}

// Approvers says who has to approve a change: by what it reaches (SM-910), by the roles of this moment, and by the policy. A class that is
// not known is the host's.
//
// Errors: problem.Refused, saying why nobody can (SM-090).
func Approvers(a Asked) (Need, error) {
	n := Need{Yeses: max(1, a.Rules.People)}
	if a.Rules.NoSelf && a.Wisher == "" {
		n.Yeses = max(2, n.Yeses) // one of them may have wished it, and not both
	}
	rungs := ladder[a.Class]
	if a.Class != Group {
		rungs, n.Typed = ladder[Host], ConfirmHost
		if n.Yeses > 1 {
			for _, p := range a.on(ladder[Host][0]) {
				n.Must = append(n.Must, p.ID)
			}
			rungs = append(slices.Clone(rungs), seconds)
		} else {
			n.Think = cmp.Or(max(a.Rules.CoolDown, 0), CoolDownDefault)
		}
	}

	anybody := a
	anybody.Rules.NoSelf = false
	for _, r := range rungs {
		for _, p := range anybody.on(r) {
			if !slices.Contains(n.No, p.ID) {
				n.No = append(n.No, p.ID)
			}
		}
		enough := len(n.Ask) >= n.Yeses
		for _, p := range a.on(r) {
			if slices.Contains(n.May, p.ID) {
				continue
			}
			n.May = append(n.May, p.ID)
			if p.Reachable && !enough {
				n.Ask = append(n.Ask, p.ID) // all of a rung: any of them decides (SM-911)
			}
		}
	}
	return n, n.lacks(a)
}

// on returns who stands on a rung and may say yes.
func (a Asked) on(r rung) (all []Person) {
	for _, p := range a.People {
		holds := slices.ContainsFunc(p.Held, func(h Held) bool { return h.Role == r.role && (!r.group || h.Group == a.Group) })
		if holds && p.ID != "" && !a.barred(p.ID) {
			all = append(all, p)
		}
	}
	return all
}

// barred reports whether the policy keeps somebody from approving the change: they wished it, or may have.
func (a Asked) barred(p id.Person) bool {
	return a.Rules.NoSelf && (a.Wisher == string(p) || slices.Contains(a.Others, string(p)))
}

// Nobody begins what is said where nobody can approve.
const Nobody = "nobody can approve this change: "

// lacks says why nobody can approve; nil if somebody can.
func (n Need) lacks(a Asked) error {
	next := "sallyport doctor"
	refuse := func(text string, args ...any) error {
		return problem.Errorf(problem.Refused, next, Nobody+text, args...)
	}
	byPolicy := func(text string, args ...any) error {
		next = cmp.Or(a.Mend, next)
		return refuse(text, args...)
	}
	all := a
	all.Rules.NoSelf = false
	owners := all.on(ladder[Host][0])
	asked := slices.ContainsFunc(owners, func(p Person) bool { return slices.Contains(n.Ask, p.ID) })
	switch {
	case len(owners) == 0:
		return refuse("the home has no owner")
	case (a.Class != Group && !asked || len(n.May) == 0) && a.barred(owners[0].ID):
		return byPolicy("policy.yaml has nobody approve what they asked for (approvals.self: refuse), and the owner of the home asked for this, or spoke when it was asked for. With approvals.self: allow the owner may approve it")
	case a.Class != Group && !asked:
		return refuse("it is the owner's to approve, who cannot be reached")
	case len(n.Ask) == 0:
		return refuse("none of those who may can be reached")
	case len(n.Ask) < n.Yeses && n.Yeses > a.Rules.People:
		return byPolicy("nobody knows who asked for it, so policy.yaml wants two people (approvals.self: refuse), and %s. With approvals.self: allow one person may approve it", reachable(len(n.Ask)))
	case len(n.Ask) < n.Yeses:
		return byPolicy("policy.yaml wants %d people to approve it (approvals.people: %d), and %s. With approvals.people: 1 one person may approve it", n.Yeses, n.Yeses, reachable(len(n.Ask)))
	}
	return nil
}

// reachable says how many of those who may approve there are.
func reachable(n int) string {
	if n == 1 {
		return "one of those who may can be reached"
	}
	return fmt.Sprintf("%d of those who may can be reached", n)
}

// Wait says how long a yes has to wait yet: an owner who approves a change of the host alone thinks about it first (SM-912). Who wished it
// does not count here: that is what an agent says.
func (n Need) Wait(asked, now time.Time) time.Duration {
	return max(0, n.Think-max(0, now.Sub(asked)))
}
