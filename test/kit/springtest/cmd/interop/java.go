package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/observerd/observerd/test/kit/servertest"
)

// java is a built program.
type java struct{ jar string }

// run runs a verb and reads what it prints, one value of JSON. It is killed
// when ctx ends.
func (j java) run(ctx context.Context, into any, args ...string) error {
	p, err := j.start(ctx, args...)
	if err != nil {
		return err
	}
	return p.end(into)
}

// process is a verb that runs.
type process struct {
	verb   string
	cmd    *exec.Cmd
	stdout *bufio.Reader
	stderr bytes.Buffer
}

func (j java) start(ctx context.Context, args ...string) (*process, error) {
	p := &process{verb: args[0]}
	p.cmd = exec.CommandContext(ctx, "java", append([]string{"-Duser.timezone=UTC", "-Xmx256m", "-jar", j.jar}, args...)...)
	// Names of locks are not ASCII alone.
	p.cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	p.cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	p.cmd.Stderr = &p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("java %s: %w", p.verb, err)
	}
	p.stdout = bufio.NewReader(stdout)
	return p, nil
}

// ready waits until the process says that it begins.
func (p *process) ready() error {
	line, err := p.stdout.ReadString('\n')
	if err == nil && line == "ready\n" {
		return nil
	}
	return errors.Join(fmt.Errorf("java %s does not begin: %q, %w", p.verb, line, err), p.end(nil))
}

// end waits for the end of the process and reads the rest of what it prints.
func (p *process) end(into any) error {
	text, err := io.ReadAll(p.stdout)
	if err := errors.Join(err, p.cmd.Wait()); err != nil {
		return fmt.Errorf("java %s: %w\n%s", p.verb, err, tail(p.stderr.String()))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("java %s printed %q: %w", p.verb, text, err)
	}
	return nil
}
