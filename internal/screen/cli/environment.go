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
	keys := api.Keys{}
	for _, name := range w.Keys {
		if v := getenv(name); v != "" {
			keys[name] = api.Key(v)
		}
	}
	return keys
}

// basesFrom reads where the person's environment says that a model is. A slash at the end says nothing.
func basesFrom(getenv func(string) string, w api.Wanted) map[string]string {
	bases := map[string]string{}
	for _, name := range w.Bases {
		if v := strings.TrimRight(getenv(name), "/"); v != "" {
			bases[name] = v
		}
	}
	return bases
}

// envFrom reads what the home's env: for an agent refers to. What is not set is left out: nobody said that it is empty.
func envFrom(getenv func(string) string, w api.Wanted) map[string]string {
	env := map[string]string{}
	for _, name := range w.Env {
		if v := getenv(name); v != "" {
			env[name] = v
		}
	}
	return env
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
