package config

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/observerd/observerd/internal/config/dburl"
	"github.com/observerd/observerd/internal/config/fileowner"
	"github.com/observerd/observerd/internal/config/yamlfile"
)

// checkExposed rejects secrets that are written in a configuration that every user of the
// host may read. It checks a file alone, before the environment is merged over it: a
// password without effect is a password too. The key is not marked as wrong, so that its
// other mistakes are reported as well.
func (r reader) checkExposed(p place, at string, texts ...any) {
	if !r.exposed || !isSecret(p.value.Type()) {
		return
	}
	for _, text := range texts {
		written, _ := text.(string)
		written = withoutVariables(written)
		if p.unit() == "URL" && dburl.HoldsPassword(written) || p.unit() != "URL" && written != "" {
			r.RejectAt(r.OriginOf(at), at, whyExposed(r.in, p, at))
			return
		}
	}
}

func whyExposed(in file, p place, at string) string {
	what, instead := "password", "write ${NAME} for it"
	if p.unit() != "URL" {
		what = "secret"
	}
	if p.file {
		instead += ", or " + p.key + "-file"
	}
	if strings.HasPrefix(p.at, "sources.") {
		instead = "write ${NAME} for it, url-file or password-file"
	}
	return fmt.Sprintf("%s holds a %s, and every user of this host may read this file (mode %04o); %s, or %s",
		at, what, in.info.Mode().Perm(), fileowner.Close(in.path, in.info), instead)
}

// warnOfReaders warns of a file that holds a secret and that every user of the
// host may read. It is not a mistake: the mode of a file that is mounted into a
// container often cannot be changed. Container engines themselves put secrets into
// /run/secrets with mode 0444, where it cannot be changed and need not be: there are
// no other users in the container.
func (o Options) warnOfReaders(r *yamlfile.Report, key, name string, info fs.FileInfo) {
	if !o.OthersMayRead(info) || info.Mode().Perm() == 0o444 && strings.HasPrefix(name, "/run/secrets/") {
		return
	}
	r.Warn(key, fmt.Sprintf("the file holds a secret, and every user of this host may read it (mode %04o); %s",
		info.Mode().Perm(), fileowner.Close(name, info)))
}
