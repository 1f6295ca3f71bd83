package server

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"atoll/internal/store"
	"atoll/repair"
)

// metrics are what the server counts. Their names are stable: dashboards
// depend on them (docs/OPERATIONS.md lists them).
type metrics struct {
	registry *prometheus.Registry
	messages prometheus.Counter
	turns    prometheus.Counter
	dropped  prometheus.Counter
	stalls   prometheus.Counter
	shed     prometheus.Counter
	denied   prometheus.Counter
	restarts *prometheus.CounterVec
	repaired repairMetrics
	progress repair.Progress // what those say; of the loop
	told     told            // of it
	syncs    prometheus.Histogram
}

func newMetrics(s *Server) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		stalls:   prometheus.NewCounter(prometheus.CounterOpts{Name: "atoll_disk_stalls_total", Help: "Commits and turns of the loop that lasted too long."}),
		shed:     prometheus.NewCounter(prometheus.CounterOpts{Name: "atoll_requests_shed_total", Help: "Writes that were let go because the disk hung."}),
		messages: prometheus.NewCounter(prometheus.CounterOpts{Name: "atoll_messages_total", Help: "Messages that the node has stepped."}),
		turns:    prometheus.NewCounter(prometheus.CounterOpts{Name: "atoll_turns_total", Help: "Turns of the loop: messages per turn is the batching."}),
		dropped:  prometheus.NewCounter(prometheus.CounterOpts{Name: "atoll_answers_dropped_total", Help: "Answers that their session couldn't take."}),
		denied:   prometheus.NewCounter(prometheus.CounterOpts{Name: "atoll_denied_total", Help: "Messages that their sender's role doesn't allow."}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "atoll_task_restarts_total",
			Help: "How often a task of the node had ended and was started again.",
		}, []string{"task"}),
		repaired: newRepairMetrics(),
		syncs: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "atoll_journal_sync_seconds",
			Help:    "How long the journal's write and sync took.",
			Buckets: prometheus.ExponentialBuckets(100e-6, 2, 16),
		}),
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	m.registry.MustRegister(m.stalls, m.shed, m.messages, m.turns, m.dropped, m.denied, m.restarts, m.syncs,
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_mail_dropped_total",
			Help: "Messages for tasks that found no room in their mailbox.",
		}, func() float64 { return float64(s.runtime.Stats().MailDropped) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_connections_incoming_total",
			Help: "Connections that came in, those included that came to nothing.",
		}, func() float64 { return float64(s.transport.Stats().Incoming) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_connections_refused_total",
			Help: "Connections that were turned away because there were too many, or no memory for another.",
		}, func() float64 { return float64(s.transport.Stats().Refused) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_connections_evicted_total",
			Help: "Connections of clients that were closed because there was no memory left for all and they had the most.",
		}, func() float64 { return float64(s.transport.Stats().Evicted) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "atoll_connection_memory_refused_total",
			Help: "How often a connection got no more memory because it had more than its share.",
		}, func() float64 { return float64(s.transport.Stats().OverBudget) }),
		gauge("atoll_connections", "Connections with clients and other nodes.", func() float64 { return float64(s.transport.Stats().Sessions) }),
		gauge("atoll_connection_memory_bytes", "What all connections are counted to cost in memory.", func() float64 { return float64(s.transport.Stats().Memory) }),
		gauge("atoll_inbox_messages", "Messages that wait for the loop.", func() float64 { return float64(s.inbox.len()) }),
		gauge("atoll_held_answers", "Answers that wait for the disk.", func() float64 { return float64(s.held.len()) }),
		gauge("atoll_disk_full", "1 while writes are refused for want of space.", func() float64 { return number(s.store.Condition().Full != nil) }),
		gauge("atoll_disk_stalled", "1 while a commit or a turn of the loop lasts too long.", func() float64 { return number(s.stalled()) }),
		gauge("atoll_keys", "Registers that have a value.", func() float64 { return float64(s.store.Usage().Keys) }),
		gauge("atoll_tombstones", "Registers that were deleted.", func() float64 { return float64(s.store.Usage().Tombstones) }),
		gauge("atoll_disk_bytes", "Bytes on disk, journal and ballast included.", func() float64 { return float64(s.store.Usage().Bytes) }),
		gauge("atoll_certificate_expiry_seconds", "Unix time at which the node's certificate ends.", func() float64 {
			return float64(s.folder.Credentials.Expiry().Unix())
		}),
	)
	m.registry.MustRegister(m.repaired.all()...)
	return m
}

// repairMetrics are what repair has done since the process started, and what is
// left to do.
type repairMetrics struct {
	passes, compared, merged, bytes, examined, healed prometheus.Counter
	damaged                                           prometheus.Gauge
}

func newRepairMetrics() repairMetrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return repairMetrics{
		passes:   counter("atoll_repair_passes_total", "Passes over all keys of another member."),
		compared: counter("atoll_repair_keys_compared_total", "Keys that were compared with another member's."),
		merged:   counter("atoll_repair_records_merged_total", "Records that the node had missed and took from another member."),
		bytes:    counter("atoll_repair_merged_bytes_total", "Bytes of keys and values of those records."),
		examined: counter("atoll_repair_records_examined_total", "Records that were read in search of damage."),
		healed:   counter("atoll_repair_records_healed_total", "Damaged records that were healed from other members."),
		damaged:  prometheus.NewGauge(prometheus.GaugeOpts{Name: "atoll_repair_records_damaged", Help: fmt.Sprintf("Damaged records that are known and not healed; %d means at least so many.", repair.MaxDamaged)}),
	}
}

func (m *repairMetrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.passes, m.compared, m.merged, m.bytes, m.examined, m.healed, m.damaged}
}

// show adds what was done between two looks.
func (m *repairMetrics) show(last, now repair.Progress) {
	m.passes.Add(float64(now.Passes - last.Passes))
	m.compared.Add(float64(now.Compared - last.Compared))
	m.merged.Add(float64(now.Merged - last.Merged))
	m.bytes.Add(float64(now.Bytes - last.Bytes))
	m.examined.Add(float64(now.Examined - last.Examined))
	m.healed.Add(float64(now.Healed - last.Healed))
	m.damaged.Set(float64(now.Damaged))
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *metrics) turn(messages int) {
	m.turns.Inc()
	m.messages.Add(float64(messages))
}

// told is what the log was told of repair.
type told struct {
	damaged, healed, merged int64
	damagedAt, healedAt     time.Time
}

// due reports whether the log is to be told now that more records are damaged than
// it knows, and that more were healed. Where a page or a file goes bad they come by
// the thousand, and are met one by one: a line for each would bury all others.
func (t *told) due(p repair.Progress, now time.Time) (damage, healing bool) {
	t.damaged = min(t.damaged, p.Damaged)
	if damage = p.Damaged > t.damaged && now.Sub(t.damagedAt) >= damageLogEvery; damage {
		t.damaged, t.damagedAt = p.Damaged, now
	}
	healing = p.Healed > t.healed && now.Sub(t.healedAt) >= damageLogEvery
	if healing {
		t.healedAt = now
	}
	return damage, healing
}

// showRepair shows what repair has done, and logs what an operator should know. The
// loop calls it after each turn.
func (s *Server) showRepair() {
	m, p := s.metrics, s.node.Progress()
	if p.Damaged != m.told.damaged || p.Healed != m.told.healed {
		s.tellDamage(p)
	}
	last := m.progress
	if p == last {
		return
	}
	m.progress = p
	if p.Passes > last.Passes && p.Merged > m.told.merged {
		s.log.Info("took over records that were missed", "records", p.Merged-m.told.merged)
		m.told.merged = p.Merged
	}
	m.repaired.show(last, p)
}

// tellDamage logs what is damaged and what was healed, if it is time for that.
func (s *Server) tellDamage(p repair.Progress) {
	t := &s.metrics.told
	damage, healing := t.due(p, time.Now())
	if damage {
		first, _ := s.node.Damaged()
		s.log.Warn("records are damaged: this node abstains on them until they are healed from other members",
			"file", filepath.Join(s.folder.Dir, store.StateFile), "first_key", string(first), "records", p.DamagedText())
	}
	if healing {
		s.log.Info("healed damaged records", "records", p.Healed-t.healed, "left", p.DamagedText())
		t.healed = p.Healed
	}
}

func (m *metrics) observeSync(d time.Duration) { m.syncs.Observe(d.Seconds()) }
