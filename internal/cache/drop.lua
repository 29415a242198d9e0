-- Forgets entries, at most so many, and says how many that were.
-- KEYS: the index that they are in, of all or of an owner; the index of all; the
-- sizes; the sums. ARGV: the most, or the name of the one entry; the prefix of keys.
local index, all, sizes, sums = unpack(KEYS)
local which, prefix = unpack(ARGV)
local members = {which}
if tonumber(which) then members = redis.call('ZRANGE', index, 0, tonumber(which) - 1) end
for _, member in ipairs(members) do
  local n = tonumber(redis.call('HGET', sizes, member) or 0)
  local whose = string.sub(member, 1, 64)
  redis.call('DEL', prefix .. 'e:' .. member)
  redis.call('HDEL', sizes, member)
  redis.call('ZREM', all, member)
  redis.call('ZREM', prefix .. 'o:' .. whose, member)
  if n > 0 then
    redis.call('HINCRBY', sums, 'all', -n)
    if redis.call('HINCRBY', sums, whose, -n) <= 0 then redis.call('HDEL', sums, whose) end
  end
end
return #members
