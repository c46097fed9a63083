// Command interop runs the real lock registries of Spring Integration beside ours, the
// JdbcLockRegistry on one table and the RedisLockRegistry on one Redis, and checks that they
// exclude each other:
//
//	interop -time 1m -only spring6,spring7,redis
//
// It needs a JDK of at least 17, Maven, and the programs of PostgreSQL and Redis
// servers. Without a JDK or Maven it says so and succeeds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/pgtest"
	"github.com/observerd/observerd/test/kit/springtest"
)

const (
	exitFailed = 1
	exitUsage  = 64
)

func main() {
	// Children ask the kernel to be told when the thread that started them ends.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// settings are the flags.
type settings struct {
	project, cache, repository, only string
	time                             time.Duration
	seed                             int64
	offline                          bool
	// versions are those of the library, where they are not the project's.
	versions map[springtest.Generation]string
}

func parse(args []string, stderr io.Writer) (s settings, err error) {
	s.versions = make(map[springtest.Generation]string)
	flags := flag.NewFlagSet("interop", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&s.project, "project", "interop/spring", "the `folder` of the Maven project")
	flags.StringVar(&s.cache, "cache", ".cache/interop-spring", "the `folder` that is written to")
	flags.StringVar(&s.repository, "m2", ".cache/m2", "Maven's local repository")
	flags.StringVar(&s.only, "only", "spring5,spring6,spring7,redis", "the generations to run, and the registry of Redis")
	flags.DurationVar(&s.time, "time", time.Minute, "how long the sides contend in each generation")
	flags.Int64Var(&s.seed, "seed", 1, "the seed of all that is random")
	flags.BoolVar(&s.offline, "offline", false, "do not let Maven ask for anything that it has not got yet")
	for _, g := range springtest.Generations() {
		flags.Func(g.String(), "the `version` of the library for that generation", func(v string) error {
			s.versions[g] = v
			return nil
		})
	}
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	for _, path := range []*string{&s.project, &s.cache, &s.repository} {
		if *path, err = filepath.Abs(*path); err != nil {
			return s, err
		}
	}
	return s, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitUsage
	}
	tools, why := findTools(ctx)
	if why != nil {
		fmt.Fprintf(stdout, "interop-spring: skipped: %v\n", why)
		return 0
	}
	if err := all(ctx, s, tools, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "interop-spring: %v\n", err)
		return exitFailed
	}
	return 0
}

func runFolder(parent string) (string, error) {
	if err := os.MkdirAll(parent, 0o755); err != nil { //nolint:gosec // Nothing in it is secret.
		return "", err
	}
	return os.MkdirTemp(parent, "run-")
}

// all runs every generation, also after one has failed.
func all(ctx context.Context, s settings, tools tools, stdout, stderr io.Writer) (err error) {
	server, err := pgtest.Open(ctx, pgtest.Options{})
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	// A folder of its own, so that two runs do not take each other's jars away.
	if s.cache, err = runFolder(s.cache); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.cache)) }()
	binary := filepath.Join(s.cache, "observerd")
	if err := buildObserverd(ctx, binary); err != nil {
		return err
	}
	tools.print(stdout)
	var errs []error
	for _, g := range springtest.Generations() {
		if !strings.Contains(s.only, g.String()) {
			continue
		}
		fmt.Fprintf(stderr, "interop-spring: building and running %s\n", g)
		j, err := tools.build(ctx, s, g.String(), s.versions[g])
		if err == nil {
			err = (&trial{settings: s, server: server, java: j, generation: g, binary: binary, out: stdout}).run(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g, err))
		}
		if ctx.Err() != nil {
			return errors.Join(append(errs, context.Cause(ctx))...)
		}
	}
	if strings.Contains(s.only, redisProfile) {
		fmt.Fprintf(stderr, "interop-spring: building and running %s\n", redisProfile)
		j, err := tools.build(ctx, s, redisProfile, "")
		if err == nil {
			err = (&trial{settings: s, server: server, java: j, out: stdout}).redis(ctx)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", redisProfile, err))
		}
	}
	return errors.Join(errs...)
}
