package mutant

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/observerd/observerd/test/kit/daemon"
	"github.com/observerd/observerd/test/suite/torture"
)

// writeOverlay writes the texts, by their files under root, into the folder, which
// it makes, and the overlay that names them.
func writeOverlay(root, folder string, texts map[string]string) (path string, err error) {
	if root, err = filepath.Abs(root); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	replace := make(map[string]string, len(texts))
	for file, text := range texts {
		// The name does not end in .go: the folder may lie in the module, and is
		// none of its packages.
		edited := filepath.Join(folder, strings.ReplaceAll(filepath.ToSlash(file), "/", "_")+".edited")
		if err := os.WriteFile(edited, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("write overlay: %w", err)
		}
		replace[filepath.Join(root, file)] = edited
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	path = filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(path, list, 0o600); err != nil {
		return "", fmt.Errorf("write overlay: %w", err)
	}
	return path, nil
}

// Build builds the daemon of the mutant, with failpoints, into the folder, and the program
// that holds general locks where the mutant asks for it.
func (m Mutant) Build(ctx context.Context, root, folder string) (binary, holder string, err error) {
	overlay, err := m.Apply(root, folder)
	if err != nil {
		return "", "", err
	}
	if folder, err = filepath.Abs(folder); err != nil {
		return "", "", fmt.Errorf("build mutant %s: %w", m.Name, err)
	}
	binary = filepath.Join(folder, "observerd")
	builds := []daemon.BuildOptions{{Out: binary, Tags: "failpoints", Version: "mutant-" + m.Name}}
	if m.Hints.Programs {
		holder = filepath.Join(folder, "holder")
		builds = append(builds, daemon.BuildOptions{Package: torture.HolderPackage, Out: holder, Tags: "failpoints"})
	}
	for _, o := range builds {
		o.Overlay, o.Folder = overlay, root
		if err := daemon.Build(ctx, o); err != nil {
			return "", "", fmt.Errorf("build mutant %s: %w", m.Name, err)
		}
	}
	return binary, holder, nil
}
