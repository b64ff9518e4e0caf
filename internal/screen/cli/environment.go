package cli

import (
	"context"
	"strings"

	"sallyport/internal/base/problem"
	"sallyport/internal/door/api"
	"sallyport/internal/door/client"
)

// keysFrom reads the keys that are wanted from the person's environment, and nothing else of it.
func keysFrom(getenv func(string) string, w api.Wanted) api.Keys {
	return setOf[api.Key](getenv, w.Keys)
}

// basesFrom reads where the person's environment says that a model is. A slash at the end says nothing.
func basesFrom(getenv func(string) string, w api.Wanted) map[string]string {
	return setOf[string](func(name string) string { return strings.TrimRight(getenv(name), "/") }, w.Bases)
}

// envFrom reads what the home's env: for an agent refers to. What is not set is left out: nobody said that it is empty.
func envFrom(getenv func(string) string, w api.Wanted) map[string]string {
	return setOf[string](getenv, w.Env)
}

func setOf[V ~string](getenv func(string) string, names []string) map[string]V {
	set := map[string]V{}
	for _, name := range names {
		if v := getenv(name); v != "" {
			set[name] = V(v)
		}
	}
	return set
}

// giveKeys gives the keys of a change's agent again, if this environment has them: a daemon that died has forgotten them. A change that
// needs none, or has ended, is left alone.
func giveKeys(ctx context.Context, getenv func(string) string, c *client.Client, ref string) error {
	w, err := client.Call(ctx, c, api.KeyWanted, api.WhoWants{Of: ref})
	if err != nil {
		return err
	}
	keys := keysFrom(getenv, w)
	if len(keys) == 0 || w.Change == "" {
		return nil
	}
	err = client.Do(ctx, c, api.KeyGive, api.GiveKeys{Of: w.Change, Keys: keys})
	if problem.KindOf(err) == problem.Conflict { // it has ended, or was taken up by somebody else meanwhile
		return nil
	}
	return err
}
