package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// tick is the unit of CPU times in /proc: USER_HZ is 100 on every Linux.
const tick = time.Second / 100

// Process is a node.
type Process struct {
	// Name is the node's, unique in its cluster.
	Name string
	// Dir is where it keeps its data.
	Dir string
	// Journal is the folder of its journal, if that is looked at apart.
	Journal string

	cmd   *exec.Cmd
	log   string
	input io.Closer
	done  chan struct{} // closed when it has ended
}

// launch starts a node. What it prints is added to dir/name.log; its standard
// output goes to output instead, if that isn't nil.
//
// It is in a process group of its own, so that Ctrl-C at the terminal reaches
// only this process, which then ends it. PDEATHSIG is tied to the thread that
// starts it, and Go ends a thread only when a goroutine that locked it returns,
// which none does here.
func launch(dir, name string, cmd *exec.Cmd, output io.Writer) (*Process, error) {
	p := &Process{Name: name, Dir: filepath.Join(dir, name), cmd: cmd, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if output != nil {
		cmd.Stdout = output
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if p.input, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Kill ends the process as a power cut would, and returns when it has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // an error says that it has ended already
	<-p.done
	p.input.Close()
}

// Pause stops the process where it is, as an overloaded host or a suspended
// virtual machine does, until Resume.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Ended returns an error if one of the processes has ended, with the last that
// it printed.
func Ended(all []*Process) error {
	for _, p := range all {
		select {
		case <-p.done:
			return fmt.Errorf("node %s ended (%v): %s", p.Name, p.cmd.ProcessState, p.lastLine())
		default:
		}
	}
	return nil
}

func (p *Process) lastLine() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(lines[len(lines)-1])
}

func killAll(all []*Process) {
	for _, p := range all {
		p.Kill()
	}
}

// CPU returns the processor time that the process has used.
func (p *Process) CPU() (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return cpuOf(string(b))
}

// cpuOf reads user and system time from /proc/PID/stat. The second field, the
// command, may have spaces and parentheses in it.
func cpuOf(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, fmt.Errorf("unexpected /proc/PID/stat: %q", stat)
	}
	user, uerr := strconv.ParseInt(fields[11], 10, 64)
	system, serr := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(uerr, serr)
}

// BusyCPU returns the processor time that the whole machine has used.
func BusyCPU() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	return busyOf(string(b))
}

// busyOf reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq, steal.
func busyOf(stat string) (time.Duration, error) {
	first, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("unexpected /proc/stat: %q", first)
	}
	var busy int64
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return time.Duration(busy) * tick, nil
}

// Memory returns the process's resident memory in bytes, and how much of it
// isn't backed by files: what is mapped of a database counts to the first only.
func (p *Process) Memory() (resident, anonymous int64, err error) {
	return MemoryOf(p.cmd.Process.Pid)
}

// MemoryOf is Memory of any process.
func MemoryOf(pid int) (resident, anonymous int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	return memoryOf(string(b))
}

func memoryOf(status string) (resident, anonymous int64, err error) {
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		to := map[string]*int64{"VmRSS": &resident, "RssAnon": &anonymous}[name]
		if to == nil {
			continue
		}
		kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, 0, err
		}
		*to = kb << 10
	}
	if resident == 0 {
		return 0, 0, errors.New("no VmRSS in /proc/PID/status")
	}
	return resident, anonymous, nil
}

// Size returns the bytes of all files below a folder, 0 if there is none. Files
// may come and go meanwhile.
func Size(dir string) (int64, error) {
	var size int64
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
