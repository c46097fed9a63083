// govulncheck, which looks for known vulnerabilities: `make vulncheck`. Run it from
// the repository's root:
//
//	go tool -modfile=tools/vuln/go.mod govulncheck
module github.com/observerd/observerd/tools/vuln

go 1.26.0

// v1.9.0 names the version of the next day, which the module proxy
// proxy.golang.org does not hand out.
replace golang.org/x/telemetry => golang.org/x/telemetry v0.0.0-20261009151841-97e8ea77aa2a

tool golang.org/x/vuln/cmd/govulncheck

require (
	golang.org/x/mod v0.42.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/telemetry v0.0.0-20261010193011-f71dc92da45e // indirect
	golang.org/x/tools v0.52.0 // indirect
	golang.org/x/vuln v1.9.0 // indirect
)
