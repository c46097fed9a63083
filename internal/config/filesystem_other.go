//go:build !linux

package config

// statFS returns 0 where the kernel is not Linux: the kind is not known.
func statFS(string) (uint32, error) { return 0, nil }
