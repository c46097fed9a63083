package redislock_test

import (
	"bufio"
	"net"
	"strconv"
	"strings"
	"testing"
)

// answering is the address of a server that answers each command, by its first word.
func answering(t *testing.T, answer func(command string) string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn, answer)
		}
	}()
	return l.Addr().String()
}

func serve(conn net.Conn, answer func(command string) string) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	size := func(mark string) int {
		line, _ := r.ReadString('\n')
		n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(line, mark)))
		if err != nil {
			return -1
		}
		return n
	}
	for {
		var words []string
		for range size("*") {
			text := make([]byte, max(size("$"), 0)+2)
			for i := range text {
				text[i], _ = r.ReadByte()
			}
			words = append(words, string(text[:len(text)-2]))
		}
		if len(words) == 0 {
			return
		}
		if _, err := conn.Write([]byte(answer(strings.ToLower(words[0])))); err != nil {
			return
		}
	}
}
