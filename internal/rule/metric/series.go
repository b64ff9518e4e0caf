package metric

import (
	"github.com/prometheus/client_golang/prometheus"

	"sallyport/internal/rule/budget"
)

// series is what a scrape shows. A label's values are words of ours, from lists below.
type series struct {
	seconds     [measures]prometheus.Histogram // by standards
	checkpoints *prometheus.CounterVec
	pauses      *prometheus.CounterVec
	resumes     *prometheus.CounterVec
	reverts     *prometheus.CounterVec
	lookups     *prometheus.CounterVec
	moves       *prometheus.CounterVec
	landings    prometheus.Counter
	rollbacks   prometheus.Counter
	refused     prometheus.Counter
	requests    *prometheus.CounterVec
	tokens      *prometheus.CounterVec
	cost        prometheus.Counter
	budgets     *prometheus.GaugeVec
	sessions    *prometheus.GaugeVec
	alerts      *prometheus.GaugeVec
	queue       prometheus.Gauge
	upper       prometheus.Gauge
	upperMost   prometheus.Gauge
	held        prometheus.Gauge
	heldMost    prometheus.Gauge
	resident    prometheus.Gauge
	descriptors prometheus.Gauge
}

// other stands for a word that is in no list: a label never carries what it is handed.
const other = "other"

var (
	triggers = []string{"end", "demand", "interval", "changes", "interrupted", "restored", "turn_end"}
	words    = []string{validWord, "invalid", skippedWord, failedWord}
	states   = []string{
		"requested", "preparing", "working", "paused", "blocked", "submitted", "awaiting_approval", "landing", "in_trial",
		"finalized", "rolled_back", "rollback_failed", "rejected", "cancelled", "failed",
	}
)

const (
	okWord      = "ok"
	failedWord  = "failed"
	validWord   = "valid"
	skippedWord = "skipped"
)

func newSeries() series {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "sallyport_" + name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sallyport_" + name, Help: help}, labels)
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "sallyport_" + name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "sallyport_" + name, Help: help}, labels)
	}
	s := series{
		checkpoints: counters("checkpoints_total",
			"Checkpoints by what caused them and what became of them; failed = none could be taken.", "trigger", "verdict"),
		pauses:    counters("pauses_total", "Attempts to stop every process of a session.", "result"),
		resumes:   counters("resumes_total", "Attempts to let a stopped session run again.", "result"),
		reverts:   counters("reverts_total", "Attempts to revert files or trees while an agent works.", "result"),
		lookups:   counters("secret_lookups_total", "Scans for secrets that were found done already (hit), or had to be made (miss).", "result"),
		moves:     counters("change_moves_total", "Moves of changes, by the state they came to.", "state"),
		landings:  counter("landings_total", "Changes that landed."),
		rollbacks: counter("rollbacks_total", "Landed changes that were rolled back."),
		refused:   counter("samples_refused_total", "Measurements below zero; they are in no other figure."),
		requests: counters("model_requests_total",
			"Requests to models: the answer told what was used (told), it was estimated (estimated), or a budget refused the request (refused).", "usage"),
		tokens:      counters("model_tokens_total", "Tokens that models read and wrote; cached ones are not in input.", "kind"),
		cost:        counter("model_cost_total", "What models cost, by the owner's prices in sallyport.yaml."),
		budgets:     gauges("budget_used_ratio", "How much of a budget is used; of a budget for each change, by the change that used most; 0 without a budget.", "budget"),
		sessions:    gauges("sessions", "Sessions that run, and that wait for a place.", "state"),
		alerts:      gauges("alert", "1 while an alert is raised.", "alert"),
		queue:       gauge("event_queue_depth", "Events that waited when the watches were last read, in all."),
		upper:       gauge("upper_bytes", "What all agents wrote, on disk now."),
		upperMost:   gauge("upper_change_bytes_max", "What the agent that wrote most wrote, on disk now."),
		held:        gauge("watch_memory_bytes", "What watching all changes holds in memory."),
		heldMost:    gauge("watch_memory_change_bytes_max", "What watching the change that takes most holds in memory."),
		resident:    gauge("resident_memory_bytes", "Memory of the daemon."),
		descriptors: gauge("descriptors", "Open descriptors of the daemon."),
	}
	for i, st := range standards {
		s.seconds[i] = prometheus.NewHistogram(prometheus.HistogramOpts{Name: st.metric, Help: st.help, Buckets: st.buckets()})
	}
	return s
}

// register hands every series to a registry, with each label's values at zero, so that an
// absent figure is never taken for a good one.
func (s *series) register(to *prometheus.Registry) {
	for _, h := range s.seconds {
		to.MustRegister(h)
	}
	to.MustRegister(s.checkpoints, s.pauses, s.resumes, s.reverts, s.lookups, s.moves, s.landings, s.rollbacks, s.refused,
		s.requests, s.tokens, s.cost, s.budgets, s.sessions, s.alerts, s.queue, s.upper, s.upperMost, s.held, s.heldMost, s.resident, s.descriptors)
	for _, word := range []string{okWord, failedWord} {
		s.pauses.WithLabelValues(word)
		s.resumes.WithLabelValues(word)
		s.reverts.WithLabelValues(word)
	}
	for _, trigger := range triggers {
		for _, word := range words {
			s.checkpoints.WithLabelValues(trigger, word)
		}
	}
	for _, state := range states {
		s.moves.WithLabelValues(state)
	}
	for _, word := range []string{"told", "estimated", "refused"} {
		s.requests.WithLabelValues(word)
	}
	for _, kind := range []string{"input", "cached", "output"} {
		s.tokens.WithLabelValues(kind)
	}
	for _, name := range budget.Names {
		s.budgets.WithLabelValues(string(name)).Set(0)
	}
	s.lookups.WithLabelValues("hit")
	s.lookups.WithLabelValues("miss")
	for _, r := range rules {
		s.alerts.WithLabelValues(r.Name).Set(0)
	}
}
