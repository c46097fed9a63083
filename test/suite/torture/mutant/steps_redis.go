package mutant

const (
	redisPrelude = "internal/lock/redislock/lua/prelude.lua"
	redisRelease = "internal/lock/redislock/lua/release.lua"
	redisRenew   = "internal/lock/redislock/lua/renew.lua"
	redisAcquire = "internal/lock/redislock/acquire.go"
)

// The steps of locks in Redis.

func termInRedisRelease() Step {
	return Step{
		What:  "a release in Redis deletes the key of whoever has it",
		Edits: []Edit{{redisRelease, "elseif holds(value, term) then", "elseif value then"}},
	}
}

func termInRedisRenewal() Step {
	return Step{
		What:  "a renewal in Redis prolongs the lock of whoever has it",
		Edits: []Edit{{redisRenew, "not (value and holds(value, term))", "not value"}},
	}
}

func lastFenceInRedis() Step {
	return Step{
		What:  "the fence in Redis is the time, whatever the last one was",
		Edits: []Edit{{redisPrelude, "local token = int(last and math.max(us, string.match(last, '^%d+') + 1) or us)", "local token = int(us)"}},
	}
}

func messageOfRedisRelease() Step {
	return Step{
		What:  "a release in Redis is not published",
		Edits: []Edit{{redisRelease, "redis.pcall('PUBLISH', channel, message)", "0"}},
	}
}

func endOfARedisMember() Step {
	return Step{
		What:  "one of several holders in Redis lives for as long as any of them",
		Edits: []Edit{{redisPrelude, "if left <= 0 then\n", "if false then\n"}, {redisPrelude, "and left > most then", "and left > most - 1e9 then"}},
	}
}

func answerOfRedisThatIsLost() Step {
	return Step{
		What:  "what was taken in Redis and not answered is not given back",
		Edits: []Edit{{redisAcquire, "\tif err != nil && isUnknown(err) {\n\t\tp.giveBack(ctx, grants)\n\t}\n", ""}},
	}
}
