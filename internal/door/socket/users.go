package socket

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/rule/right"
	"sallyport/internal/who/group"
)

// What one user of this machine may have of the second socket. The first one never waits for it.
const (
	usersAtOnce = 64 // connections, of all
	userAtOnce  = 8  // connections, of one

	userRequests, userRequestsEach = 60, time.Second / 10 // so many at once, and one more in each of these times
	userSays, userSaysEach         = 20, 3 * time.Second
	userBytes, userBytesEach       = 4 << 20, time.Second / 512 // as much as on a platform, in the long run: nobody fills the disk

	userBodyMax = 2 << 20
)

// userVerbs are those that other users of this machine may ask for, as their roles allow it.
func (s *Server) userVerbs() []served {
	chats := chats{s.Chats, s.Approvals}
	approvals, changes, groups := approvals{s.Approvals, s.Places}, changes{s.Changes}, groups{s.Groups}
	return []served{
		mount(s.door, api.DaemonShow, s.greet),
		mount(s.door, api.GroupList, s.talkable),
		mount(s.door, api.ChatSay, chats.say),
		mountBytesBy(s.door, api.ChatWatch, s.watchWhile(chats.watch)),

		mount(s.door, api.PersonList, s.ruled),
		mount(s.door, api.PersonRole, s.ruledRole),
		mount(s.door, api.WiringList, s.ruledPlaces),
		mount(s.door, api.WiringPolicy, s.ruledPolicy),

		mount(s.door, api.ApprovalShow, approvals.show),
		mountBytes(s.door, api.ChangeDiff, changes.diff),
		mount(s.door, api.ApprovalApprove, approvals.approve),
		mount(s.door, api.ApprovalRefuse, approvals.refuse),
		mount(s.door, api.ApprovalRework, approvals.rework),
		mount(s.door, api.GroupPromote, groups.promote),
	}
}

// greet says which home and build this is, and nothing of what is done in it.
func (s *Server) greet(context.Context, audit.Actor, api.Nothing) (api.Daemon, error) {
	d := api.Daemon{Build: api.Build(), API: api.Version, Home: s.Home}
	if s.Keeper != nil { // so another build may talk with it
		d.Keeper = &api.Keeper{}
	}
	return d, nil
}

// talkable names the groups that whoever asks may talk with, and says whether the host itself asks them something.
func (s *Server) talkable(ctx context.Context, by audit.Actor, _ api.OfUser) (out api.Groups, err error) {
	out.Groups = []api.Group{}
	_, held, err := s.People.Recognize(ctx, by)
	if err != nil {
		return out, err
	}
	all, _, err := s.Groups.List(ctx, "")
	for _, g := range all {
		if right.May(right.Asker{Held: held}, api.ChatSay.Pattern(), string(g.Folder)) == nil {
			out.Groups = append(out.Groups, api.Group{Name: string(g.Folder), Agent: string(g.Group.Runner.Agent)})
		}
	}
	out.Asked = right.May(right.Asker{Held: held}, api.ChatSay.Pattern(), api.HostChat) == nil
	return out, err
}

// ServeUsers answers other users of this machine on l until ctx ends: a few verbs of a chat, of who decides about a group, and of the cards that
// they may answer, within limits for each.
func (s *Server) ServeUsers(ctx context.Context, l net.Listener) error {
	return s.serve(ctx, &crowd{Listener: l, of: map[int][]*guest{}}, s.userHandler())
}

// userHandler returns the verbs of users behind the checks of peer, rate, version and right.
func (s *Server) userHandler() http.Handler {
	mux := http.NewServeMux()
	for _, v := range s.userVerbs() {
		h := v.handler
		if !v.Bare {
			h = s.sameVersion(v.Spec, s.known(s.recognized(v.Spec, s.unlessQuiet(v.Spec, h))))
		}
		mux.HandleFunc(v.Pattern(), h)
	}
	mux.HandleFunc("/", s.answer(func(*http.Request) (any, error) {
		return nil, problem.Errorf(problem.Denied, "sallyport chat --help", "that is for who owns the home %q; you may talk with its groups", s.Home)
	}))
	return s.timed(s.bounded(s.counted(mux)))
}

// known tells a user whom the home does not know how they are let in.
func (s *Server) known(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, _, err := s.People.Recognize(r.Context(), by(r))
		if err == nil && who.Person == "" {
			err = problem.Errorf(problem.Denied, "sallyport chat --help",
				"the home %q does not know you; %s, whose it is, lets you in by: sallyport person add NAME --uid %d, and then: sallyport person role NAME member --group %s",
				s.Home, userOf(s.Owner).Name, by(r).UID, groupWord(r))
		}
		if err != nil {
			s.refuseWith(w, r, err)
			return
		}
		next(w, r)
	}
}

// groupWord is the group that a request is about.
func groupWord(r *http.Request) string {
	if name := r.PathValue("group"); api.CheckGroup(name) == nil {
		return string(group.Folder(name))
	}
	return "GROUP"
}

// bounded holds each user to their rates.
func (s *Server) bounded(next http.Handler) http.Handler {
	rates := &rates{of: map[int]*rate{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderVersion, strconv.Itoa(api.Version))
		w.Header().Set(api.HeaderBuild, api.Build())
		w.Header().Set("Cache-Control", "no-store")
		who, ok := r.Context().Value(peerKey{}).(audit.Actor)
		if !ok {
			s.refuseWith(w, r, problem.Errorf(problem.Denied, "sallyport status --home DIR", "the kernel does not say who asks for %q", s.Home))
			return
		}
		if what := rates.take(who.UID, r, time.Now()); what != "" {
			s.refuseWith(w, r, problem.Errorf(problem.Unavailable, "sallyport chat --help",
				"too many %s came from you in a short time; say it again in a few minutes", what))
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, userBodyMax)
		next.ServeHTTP(w, r)
	})
}

// rates are what each user has left.
type rates struct {
	mu sync.Mutex
	of map[int]*rate
}

// rate is what one user has left, as it was at a time.
type rate struct {
	requests, says, bytes float64
	at                    time.Time
}

// take counts a request, and names what a user has none left of; "" if they have.
func (a *rates) take(uid int, r *http.Request, now time.Time) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	u := a.of[uid]
	if u == nil {
		if len(a.of) >= usersAtOnce*16 { // as many as ever talk here; who has all that there is needs no row
			for other, one := range a.of {
				if one.fill(now); one.full() {
					delete(a.of, other)
				}
			}
		}
		u = &rate{userRequests, userSays, userBytes, now}
		a.of[uid] = u
	}
	u.fill(now)
	says, size := 0.0, float64(r.ContentLength)
	if r.Method == http.MethodPost {
		says = 1
	}
	switch {
	case u.requests < 1:
		return "requests"
	case u.says < says:
		return "messages"
	case size < 0 || u.bytes < size:
		return "bytes"
	}
	u.requests, u.says, u.bytes = u.requests-1, u.says-says, u.bytes-size
	return ""
}

func (u *rate) fill(now time.Time) {
	passed := max(0, now.Sub(u.at))
	add := func(left *float64, most int, each time.Duration) {
		*left = min(float64(most), *left+float64(passed)/float64(each))
	}
	add(&u.requests, userRequests, userRequestsEach)
	add(&u.says, userSays, userSaysEach)
	add(&u.bytes, userBytes, userBytesEach)
	u.at = now
}

func (u *rate) full() bool {
	return u.requests == userRequests && u.says == userSays && u.bytes == userBytes
}
