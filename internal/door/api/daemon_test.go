package api

import "testing"

func TestTheLimitsOfAVersionOnTrialAreSaidInWords(t *testing.T) {
	for name, row := range map[string]struct {
		keeper *Keeper
		want   string
	}{
		"limits":              {&Keeper{TrialMemory: 6 << 30, TrialProcesses: 4096}, "a version on trial may use 6.0 GiB of memory and 4096 processes"},
		"less than a GiB":     {&Keeper{TrialMemory: 384 << 20, TrialProcesses: 64}, "a version on trial may use 0.4 GiB of memory and 64 processes"},
		"of an ordinary user": {&Keeper{PID: 7}, "a version on trial has no limits of memory and processes, as this keeper can make no control group here"},
	} {
		if got := row.keeper.Limits(); got != row.want {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}
