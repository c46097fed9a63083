package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/kit/servertest"
)

// oldestJava is what Spring 6 and 7 need.
const oldestJava = 17

// tools are the programs of others.
type tools struct{ java, javac, maven string }

// findTools returns an error that says what is missing.
func findTools(ctx context.Context) (t tools, err error) {
	for _, program := range []string{"java", "javac", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return t, fmt.Errorf("there is no %s in PATH; install a JDK of at least %d and Maven (Debian: apt-get install openjdk-17-jdk-headless maven)", program, oldestJava)
		}
	}
	// A PATH entry can be there and yet not run, such as macOS's placeholders.
	if t.javac, err = firstLine(ctx, "javac", "-version"); err != nil {
		return t, err
	}
	if t.java, err = firstLine(ctx, "java", "-version"); err != nil {
		return t, err
	}
	if t.maven, err = firstLine(ctx, "mvn", "--batch-mode", "-version"); err != nil {
		return t, err
	}
	found := regexp.MustCompile(`\d+`).FindString(t.javac)
	if major, err := strconv.Atoi(found); err != nil || major < oldestJava {
		return t, fmt.Errorf("%q is too old: Spring 6 and 7 need Java %d", t.javac, oldestJava)
	}
	return t, nil
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

func firstLine(ctx context.Context, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	output, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s does not run: %w", program, strings.Join(args, " "), err)
	}
	line, _, _ := strings.Cut(escapes.ReplaceAllString(string(output), ""), "\n")
	return line, nil
}

func (t tools) print(out io.Writer) {
	fmt.Fprintf(out, "%s; %s\n", t.java, t.maven)
}

// build builds the program by a profile of the project, and returns it. An empty version of
// the library is the project's.
func (t tools) build(ctx context.Context, s settings, profile, version string) (java, error) {
	folder := filepath.Join(s.cache, profile)
	args := []string{"--batch-mode", "--quiet", "-Dmaven.repo.local=" + s.repository, "-Doutput=" + folder, "-P" + profile}
	if s.offline {
		args = append(args, "--offline")
	}
	if version != "" {
		args = append(args, "-Dspring.integration="+version)
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", append(args, "package")...)
	cmd.Dir = s.project
	cmd.SysProcAttr = servertest.Account{}.Attributes(syscall.SIGKILL)
	if output, err := cmd.CombinedOutput(); err != nil {
		return java{}, fmt.Errorf("build with Maven: %w\n%s", err, output)
	}
	return java{jar: filepath.Join(folder, "interop-spring.jar")}, nil
}

func buildObserverd(ctx context.Context, binary string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	return daemon.Build(ctx, daemon.BuildOptions{Out: binary})
}

func tail(text string) string { return text[max(0, len(text)-4000):] }

// jdbc writes a URL of pgx as JDBC wants it.
func jdbc(pgx string) (string, error) {
	u, err := url.Parse(pgx)
	if err != nil {
		return "", errors.New("the URL of the database cannot be read")
	}
	query := url.Values{"user": {u.User.Username()}}
	if password, ok := u.User.Password(); ok {
		query.Set("password", password)
	}
	return fmt.Sprintf("jdbc:postgresql://%s%s?%s", u.Host, u.Path, query.Encode()), nil
}
