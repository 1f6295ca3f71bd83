package report

import (
	"fmt"
	"strings"
)

// idle writes tables of what idle clients cost, what they do to busy ones, and
// how they come back.
func idle(b *strings.Builder, all []Idle) {
	var cost, beside, back [][]string
	for _, r := range all {
		n := float64(r.Clients)
		label := []string{fmt.Sprint(r.Round), count(r.Clients)}
		cost = append(cost, append(label[:2:2],
			number(r.Connecting),
			number(mebibytes(r.Alone.Nodes)), number(mebibytes(r.Idle.Nodes)),
			number(float64(r.Idle.Nodes-r.Alone.Nodes)/1024/n), number(1e6*(r.Idle.nodesCPU()-r.Alone.nodesCPU())/n),
			number(float64(r.Idle.Load)/1024/n), number(1e6*r.Idle.loadCPU()/n),
		))
		for _, o := range r.Busy {
			beside = append(beside, append(label[:2:2],
				fmt.Sprintf("%s × %d", o.Op, r.BusyClients), number(o.Alone.PerSecond), number(o.Beside.PerSecond), number(o.Beside.PerSecond/max(1, o.Alone.PerSecond)),
				number(o.Alone.P99), number(o.Beside.P99), number(o.Alone.Stall), number(o.Beside.Stall), fmt.Sprint(o.Beside.Errors),
			))
		}
		back = append(back, append(label[:2:2],
			r.Back.Replica, number(r.Back.Serves), number(r.Back.MostBack), number(r.Back.AllBack), number(r.Back.CPU),
			number(r.Back.Busy.PerSecond), number(r.Back.Busy.P99), number(r.Back.Busy.Stall), fmt.Sprint(r.Back.Busy.Errors),
		))
	}
	b.WriteString("Idle clients, each with connections of its own to all replicas. Memory is resident, garbage included; processor time is that of a second:\n\n")
	table(b, []string{"round", "clients", "connected after s", "replicas without, MiB", "with, MiB", "replicas, KiB a client", "µs a client", "client, KiB", "µs"}, cost)
	b.WriteString("\nBusy clients without them and beside them:\n\n")
	table(b, []string{"round", "idle", "busy", "ops/s alone", "beside", "ratio", "p99 alone, ms", "beside", "longest stall alone, ms", "beside", "errors"}, beside)
	b.WriteString("\nA replica is killed and started again; seconds from its start, and what busy clients saw meanwhile:\n\n")
	table(b, []string{"round", "idle", "replica", "serves", "nine in ten are back", "all are", "its processor time, s", "ops/s", "p99, ms", "longest stall, ms", "errors"}, back)
}

// nodesCPU and loadCPU are processor time in a second of time, in seconds.
func (c Cost) nodesCPU() float64 { return c.CPUNodes / max(shortRun, c.Seconds) }

func (c Cost) loadCPU() float64 { return c.CPULoad / max(shortRun, c.Seconds) }
