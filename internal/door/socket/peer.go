package socket

import (
	"context"
	"net"
	"net/http"
	"os/user"
	"strconv"

	"sallyport/internal/base/audit"
	"sallyport/internal/base/inert"
	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/peer"
	"sallyport/internal/rule/right"
)

// People finds the person of who asks.
type People interface {
	// Recognize returns who with their person and identity, and their roles, read at the moment of use; UID is the kernel's word.
	Recognize(ctx context.Context, who audit.Actor) (audit.Actor, []right.Held, error)
}

// peerKey is where a connection's credentials lie in its context.
type peerKey struct{}

// withPeer asks the kernel who opened a connection. Without an answer the context holds none, and nobody is heard.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	uid, ok := peer.UID(c)
	if !ok {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, userOf(uid))
}

// userOf names a user by login name; one that has no name by number.
func userOf(uid int) audit.Actor {
	name := "uid " + strconv.Itoa(uid)
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = u.Username
	}
	return audit.Actor{Kind: "person", Name: name, UID: uid}
}

// by returns who asks; onlyOwner has let nobody without credentials through.
func by(r *http.Request) audit.Actor {
	who, _ := r.Context().Value(peerKey{}).(audit.Actor)
	return who
}

// onlyOwner hears the home's owner and root, and names both sides to everyone.
func (s *Server) onlyOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(api.HeaderVersion, strconv.Itoa(api.Version))
		w.Header().Set(api.HeaderBuild, api.Build())
		w.Header().Set("Cache-Control", "no-store")
		who, ok := r.Context().Value(peerKey{}).(audit.Actor)
		if !ok || who.UID != s.Owner && who.UID != 0 {
			s.refuseWith(w, r, problem.Errorf(problem.Denied, "sallyport status --home DIR",
				"home %q belongs to %s; %s may not use it", s.Home, userOf(s.Owner).Name, orUnknown(who.Name)))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// recognized finds the person of who asks, and refuses what they may not ask for. A bare verb needs none, and so also no
// database.
func (s *Server) recognized(v api.Spec, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, held, err := s.People.Recognize(r.Context(), by(r))
		group := ""
		if err == nil {
			group, err = s.groupOf(r, v, who)
		}
		if err == nil {
			err = right.May(right.Asker{Held: held, Root: who.UID == 0}, v.Pattern(), group)
		}
		if err != nil {
			s.refuseWith(w, r, err)
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), peerKey{}, who)))
	}
}

// groupOf is the group that a request is about: the one that it names, or the one whose card it is about, where whoever asks may answer that.
func (s *Server) groupOf(r *http.Request, v api.Spec, who audit.Actor) (string, error) {
	needed, _ := right.Needed(v.Pattern())
	if name := r.PathValue("group"); name != "" || needed.Scope != right.OfGroup || s.Approvals == nil {
		return name, nil
	}
	for _, part := range []string{"change", "approval", "question"} {
		if ref := r.PathValue(part); ref != "" {
			return s.Approvals.AskedOf(r.Context(), ref, who)
		}
	}
	return "", nil
}

func orUnknown(name string) string {
	if name == "" {
		return "an unknown user"
	}
	return name
}

// sameVersion refuses a client that does not speak as this daemon does, where the verb does not answer any: what its answers would mean is not
// known. A client says the version that both speak.
func (s *Server) sameVersion(v api.Spec, next http.HandlerFunc) http.HandlerFunc {
	if v.AnyVersion {
		return next
	}
	return func(w http.ResponseWriter, r *http.Request) {
		version, build := r.Header.Get(api.HeaderVersion), r.Header.Get(api.HeaderBuild)
		said, err := strconv.Atoi(version)
		common, spoken := api.Common(said)
		// What a keeper runs is a release: another build that speaks the same talks with it, or nobody could answer a new one.
		if err != nil || !spoken || common != said || build != api.Build() && s.Keeper == nil {
			s.refuseWith(w, r, Mismatch(s.Home, build, version))
			return
		}
		next(w, r)
	}
}

// Mismatch says that client and daemon are not of one build, and the way out: a
// daemon that is stopped loses nothing, the next command starts one of its own build.
func Mismatch(home, build, version string) error {
	if build == "" {
		build = "unknown"
	}
	return problem.Errorf(problem.Unavailable, "sallyport daemon stop",
		"%s", api.Differ(home, api.Build(), strconv.Itoa(api.Version), build, inert.Line(version)))
}
