"""Scripts that Redis runs in one step: they save a change, free a round, and hold the lease.

The keys are those of `redis_store`. Every script stays within one hash slot.
"""

from __future__ import annotations

from typing import Final

# KEYS: head, rounds, seals, surveys, lost, then integers and ids of rounds. ARGV: identity, previous offset,
# new offset, accepted and attempts that come with it, then commands: how many words, name, key's index, rest.
# ROUND has the round's field, the index of its ids, and "new" or "known"; all of them are compared
# before anything is written. Totals are of the offset in `totals`: an older release moves the offset alone.
SAVE: Final = """
local head = redis.call('HMGET', KEYS[1], 'identity', 'offset', 'broken', 'totals', 'rounds', 'seals',
                        'surveys', 'lost')
if head[1] and head[1] ~= ARGV[1] then return {'foreign', head[1]} end
if head[3] then return {'broken', head[3]} end
if (head[2] or '0') ~= ARGV[2] then return {'conflict', head[2] or '0'} end
local function sizes()
  return {redis.call('HLEN', KEYS[2]), redis.call('HLEN', KEYS[3]), redis.call('HLEN', KEYS[4]),
          redis.call('LLEN', KEYS[5])}
end
local names = {'rounds', 'seals', 'surveys', 'lost'}
local has_totals = not head[2] or head[4] == head[2]
if has_totals then
  for i, size in ipairs(sizes()) do
    local expected = tonumber(head[4 + i] or '0')
    if size ~= expected then return {'changed', names[i] .. ' were ' .. expected .. ', now ' .. size} end
  end
end
local i = 6
while i <= #ARGV do
  if ARGV[i + 1] == 'ROUND' then
    local field, ids = ARGV[i + 3], KEYS[tonumber(ARGV[i + 4])]
    local numbers = KEYS[tonumber(ARGV[i + 2])]
    local outputs = redis.call('HGET', KEYS[2], field)
    local missing
    if ARGV[i + 5] == 'new' then
      if outputs then return {'changed', numbers .. ' is there, and was not'} end
    elseif not outputs then missing = 'has no field'
    elseif outputs == 'archived' then
      if redis.call('HEXISTS', KEYS[3], field) == 0 then missing = 'has no seal' end
    elseif redis.call('EXISTS', numbers) == 0 then missing = 'is gone'
    elseif redis.call('HEXISTS', KEYS[3], field) == 0 and redis.call('EXISTS', ids) == 0
           and redis.call('BITFIELD', numbers, 'GET', 'i64', '#1')[1] > 0 then missing = 'has no ids' end
    if missing then return {'changed', numbers .. ' ' .. missing} end
  end
  i = i + ARGV[i] + 1
end
i = 6
while i <= #ARGV do
  local words = tonumber(ARGV[i])
  local name, key = ARGV[i + 1], KEYS[tonumber(ARGV[i + 2])]
  local reply
  if name == 'ROUND' then
    if ARGV[i + 5] == 'new' then
      redis.call('DEL', KEYS[tonumber(ARGV[i + 4])])
      reply = redis.pcall('HSET', KEYS[2], ARGV[i + 3], '0')
      redis.call('SET', key, '')
    end
  else
    reply = redis.pcall(name, key, unpack(ARGV, i + 3, i + words))
  end
  if type(reply) == 'table' and reply.err then
    if i > 6 then redis.pcall('HSET', KEYS[1], 'broken', reply.err) end
    return {'failed', reply.err}
  end
  i = i + words + 1
end
redis.call('HSET', KEYS[1], 'identity', ARGV[1], 'offset', ARGV[3])
if has_totals then
  local now = sizes()
  redis.call('HINCRBY', KEYS[1], 'accepted', ARGV[4])
  redis.call('HINCRBY', KEYS[1], 'attempts', ARGV[5])
  redis.call('HSET', KEYS[1], 'totals', ARGV[3], 'rounds', now[1], 'seals', now[2], 'surveys', now[3],
             'lost', now[4])
end
return {'saved', ARGV[3]}
"""

# KEYS: head. ARGV: the offset that they are of, then names and values. Whoever moved it since saw to it.
SET_TOTALS: Final = """
if redis.call('HGET', KEYS[1], 'offset') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'totals', ARGV[1], unpack(ARGV, 2))
return 1
"""

# KEYS: rounds, seals, the round's integers, past. ARGV: the round's field, how many tallies.
FORGET: Final = """
local n = tonumber(ARGV[2])
if redis.call('HEXISTS', KEYS[2], ARGV[1]) == 0 then return 0 end
local outputs = redis.call('HGET', KEYS[1], ARGV[1])
if outputs == false then return 0 end
if outputs ~= 'archived' and redis.call('EXISTS', KEYS[3]) == 0 then return -1 end
for i = 0, 2 * n - 1 do
  local found = redis.call('BITFIELD', KEYS[3], 'GET', 'i64', '#' .. i)[1]
  redis.call('BITFIELD', KEYS[4], 'INCRBY', 'i64', '#' .. (i % n), string.format('%.0f', found))
end
redis.call('UNLINK', KEYS[3])
redis.call('HSET', KEYS[1], ARGV[1], 'archived')
return 1
"""

# KEYS: the lease. ARGV: token, milliseconds, 0 to give it back.
LEASE: Final = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
if ARGV[2] == '0' then redis.call('DEL', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) end
return 1
"""

# KEYS: steps, lease, how many steps are kept. ARGV: token, how many the caller knows of (empty before it
# looked), then fields and values, of which an empty one forgets its field. Returns 0 and how many there are
# now; or -1: another one holds the lease; -2: some have gone; -3: they are of another moment. Then nothing is
# written.
SAVE_GATES: Final = """
local holder = redis.call('GET', KEYS[2])
if holder and holder ~= ARGV[1] then return {-1, 0} end
local kept, there = redis.call('GET', KEYS[3]), redis.call('HLEN', KEYS[1])
if kept and tonumber(kept) ~= there then return {-2, there} end
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= there then return {kept and -3 or -2, there} end
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[1], ARGV[i])
  else redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
there = redis.call('HLEN', KEYS[1])
redis.call('SET', KEYS[3], there)
return {0, there}
"""

# KEYS: head, surveys, rounds, seals, lost, past, then the integers of some rounds. All at one moment, so that
# a partition that is written all the time can be read. Lua's stack ends at 8,000 arguments.
READ: Final = """
local integers = {}
for start = 7, #KEYS, 1000 do
  local found = redis.call('MGET', unpack(KEYS, start, math.min(start + 999, #KEYS)))
  for i = 1, #found do integers[#integers + 1] = found[i] end
end
local function all(key) return redis.call('HGETALL', key) end
return {all(KEYS[1]), all(KEYS[2]), all(KEYS[3]), all(KEYS[4]), redis.call('LRANGE', KEYS[5], 0, -1),
        redis.call('GET', KEYS[6]), integers}
"""
