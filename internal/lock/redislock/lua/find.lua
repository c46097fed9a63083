-- Returns the time, and the mark and value of a lock, or those of all who share it.
-- The key of an older system has itself in the place of its holders.
local value = redis.pcall('GET', KEYS[1])
if not value or type(value) == 'table' then return {} end
if value ~= 'shared' or KEYS[1] == KEYS[3] then return { int(us), '', int(redis.call('PEXPIRETIME', KEYS[1])) .. ' exclusive ' .. value } end
local all, found = redis.call('HGETALL', KEYS[3]), { int(us) }
for i = 1, #all, 2 do
  local expires, mode, rest = string.match(all[i + 1], '^(%d+) (%S+) (.*)$')
  if tonumber(expires) > ms then
    table.insert(found, all[i])
    table.insert(found, expires .. ' ' .. mode .. ' ' .. all[i] .. ' ' .. rest)
  end
end
return found
