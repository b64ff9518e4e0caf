// Package race hands the race detector's own options on to programs of ours that are started with an environment
// made for them. Only a build with the detector in it reads them, and only such a build hands anything on.
package race

import "os"

// Options is what such a program's environment holds besides; nil in every build without the race detector. Without
// them a program that has the detector in it sleeps a second at its end.
func Options() []string {
	const name = "GORACE"
	value, set := os.LookupEnv(name)
	if !Enabled || !set {
		return nil
	}
	return []string{name + "=" + value}
}
