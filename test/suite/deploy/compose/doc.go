// Package compose is tests alone: that what is shipped for containers fits
// together and works, as far as that can be known without a container engine.
//
//   - docker-compose.yml is loaded by compose-go, the library of docker compose
//     itself, and held against the rules of ours that its schema does not know.
//   - The SQL that it mounts runs on a real PostgreSQL, and on the emulator of
//     Oracle; real daemons poll both with the configurations that it mounts.
//   - .dockerignore is applied by the library that docker uses, and the daemon is
//     built from what is left.
//   - The daemon runs, as the image's user, in a file system that has what the
//     Dockerfile puts into the image and nothing else.
//
// TestComposeFileOnARealEngine of test/suite/nightly runs docker-compose.yml on Docker, with
// images that stand in. What stays unproven: that the images of others exist under
// their tags, and that they take the options which docker-compose.yml gives them.
package compose
