-- Begins each script. A lock has four keys: itself, its fence, its holders where it is
-- shared, and that of an older system, which is missing where there is none.
local time = redis.call('TIME')
local us = time[1] * 1000000 + time[2]
local ms = math.floor(us / 1000)
local memory = 300000 -- for which the fence of a lease that has ended is kept

local function int(n) return string.format('%.0f', n) end

local function conflicts(a, b)
  return a == 'exclusive' or b == 'exclusive' or a == 'shared' and b == 'intent-exclusive' or a == 'intent-exclusive' and b == 'shared'
end

-- holds says whether the value of a lock is that of the term; a foreign one is the term alone.
local function holds(value, term)
  return value == term or string.sub(value, 1, #term + 1) == term .. ' '
end

local function ttl_of(facts) return tonumber(string.match(facts, '^{"ttl_ms":(%d+)')) end

-- settle lets the key of a shared lock end with the last of its holders, and so that of the
-- older system, unless another has it.
local function settle(lock, holders, legacy)
  local last, ours = 0, legacy and (redis.call('GET', legacy) or 'shared') == 'shared'
  for _, holder in ipairs(redis.call('HVALS', holders)) do
    last = math.max(last, tonumber(string.match(holder, '^%d+')))
  end
  if last <= ms then
    redis.call('DEL', lock, holders)
    if ours then redis.call('DEL', legacy) end
    return
  end
  redis.call('PEXPIREAT', holders, int(last))
  redis.call('SET', lock, 'shared', 'PXAT', int(last))
  if ours then redis.call('SET', legacy, 'shared', 'PXAT', int(last)) end
end

-- refusal returns who keeps the mode out, and for how long. A lease that is dated too far
-- ahead, because the clock went back, is dated anew.
local function refusal(lock, holders, legacy, mode, except)
  local value, old = redis.call('GET', lock), legacy and redis.call('GET', legacy)
  if not value then return old, old and redis.call('PTTL', legacy) end
  if value ~= 'shared' then
    local left, ttl = redis.call('PTTL', lock), ttl_of(string.match(value, '{.*') or '')
    if ttl and left > ttl then
      redis.call('PEXPIRE', lock, ttl)
      if old and holds(value, old) then redis.call('PEXPIRE', legacy, ttl) end
      left = ttl
    end
    return value, left
  end
  local all, found, most = redis.call('HGETALL', holders), nil, 0
  for i = 1, #all, 2 do
    local expires, held, rest = string.match(all[i + 1], '^(%d+) (%S+) (.*)$')
    local left, ttl = expires - ms, ttl_of(string.match(rest, '{.*'))
    if left > ttl then
      left = ttl
      redis.call('HSET', holders, all[i], int(ms + ttl) .. ' ' .. held .. ' ' .. rest)
      settle(lock, holders, legacy)
    end
    if left <= 0 then
      redis.call('HDEL', holders, all[i])
    elseif all[i] ~= except and conflicts(held, mode) and left > most then
      found, most = all[i] .. ' ' .. rest, left
    end
  end
  if not found and old and old ~= 'shared' then return old, redis.call('PTTL', legacy) end
  return found, most
end

-- grant gives the lock to the term. It returns the fence, and whether the last holder has
-- released the lock.
local function grant(lock, fence, holders, legacy, term, mode, ttl, facts)
  local last = redis.call('GET', fence)
  local token = int(last and math.max(us, string.match(last, '^%d+') + 1) or us)
  redis.call('SET', fence, token .. ' held', 'PX', ttl + memory)
  if mode == 'exclusive' then
    redis.call('SET', lock, term .. ' ' .. token .. ' ' .. facts, 'PX', ttl)
    if legacy then redis.call('SET', legacy, term, 'PX', ttl) end
  else -- Holders of a lock whose key was removed have lost it.
    if redis.call('GET', lock) ~= 'shared' then redis.call('DEL', holders) end
    redis.call('HSET', holders, term, int(ms + ttl) .. ' ' .. mode .. ' ' .. token .. ' ' .. facts)
    settle(lock, holders, legacy)
  end
  return token, not last or string.match(last, ' (%a+)$') == 'free'
end
