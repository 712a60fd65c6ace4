/** The scheduler's state, from Redis and from the model, as texts that can be compared. */
import type { Redis } from 'ioredis'
import { compare, type LeaseModel } from './lease-model.ts'

type Dump = Readonly<Record<string, unknown>>

export async function dumpRedis(redis: Redis, prefix: string): Promise<Dump> {
  const keys = (await redis.keys(`{${prefix}}:*`)).sort()
  const dump: Record<string, unknown> = {}
  await Promise.all(
    keys.map(async (key) => {
      const name = key.slice(prefix.length + 3)
      const [kind] = name.split(':')
      if (kind === 'r') {
        for (const [id, text] of Object.entries(await redis.hgetall(key))) dump[`r:${id}`] = requestOf(text)
      } else if (kind === 'use') dump[name] = sorted(await redis.hgetall(key))
      else if (kind === 'q' || kind === 'qb') {
        dump[name] = (await redis.zrange(key, '0', '-1')).map((member) => member.slice(13))
      } else if (kind === 'on' || kind === 'sus' || kind === 'own') {
        dump[name] = (await redis.zrange(key, '0', '-1')).sort()
      } else if (kind === 'f') dump[name] = sorted(pairs(await redis.zrange(key, '0', '-1', 'WITHSCORES')))
      else if (kind === 'hb') dump[name] = (await redis.zrange(key, '0', '-1')).sort()
    }),
  )
  return dump
}

export function dumpModel(model: LeaseModel): Dump {
  const dump: Record<string, unknown> = {}
  const use: Record<string, string> = {}
  const devices = new Set<string>()
  for (const request of model.requests.values()) {
    const { id, devices: names, class: requestClass, user, owner, tag, seq, attempt, state } = request
    dump[`r:${id}`] = [names.join(','), requestClass, user, owner, tag, seq, attempt, state].map(String)
    push(dump, `own:${owner}`, id)
    for (const device of names) {
      devices.add(device)
      if (state !== 'w') push(dump, `on:${device}`, id)
      if (state === 's') push(dump, `sus:${device}`, id)
    }
  }
  for (const name of Object.keys(dump)) if (!name.startsWith('r:')) (dump[name] as string[]).sort()
  for (const device of new Set([...devices, ...model.caps.keys()])) {
    const [used, bulk, limit] = [model.used(device), model.used(device, 'bulk'), model.caps.get(device)]
    if (used > 0 || limit !== undefined) use[device] = [used, bulk, limit ?? []].flat().join(' ')
  }
  for (const device of devices) {
    const waiting = model.waiters(device).sort(compare)
    for (const request of waiting)
      push(dump, `${request.class === 'bulk' ? 'qb' : 'q'}:${device}`, request.id)
  }
  for (const [device, { top, flows }] of model.times) {
    dump[`f:${device}`] = sorted({
      '': String(top),
      ...Object.fromEntries([...flows].map(([k, v]) => [k, String(v)])),
    })
  }
  if (Object.keys(use).length > 0) dump.use = sorted(use)
  if (model.live.size > 0) dump.hb = [...model.live].sort()
  return dump
}

function requestOf(text: string): string[] {
  const [
    state = '',
    attempt = '',
    ,
    owner = '',
    devices = '',
    requestClass = '',
    tag = '',
    seq = '',
    ,
    ...user
  ] = text.split(' ')
  return [devices, requestClass, user.join(' '), owner, tag, String(Number(seq)), attempt, state]
}

function push(dump: Record<string, unknown>, name: string, id: string): void {
  const list = (dump[name] as string[] | undefined) ?? []
  list.push(id)
  dump[name] = list
}

function pairs(flat: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (let i = 0; i < flat.length; i += 2) found[flat[i] ?? ''] = flat[i + 1] ?? ''
  return found
}

function sorted(record: Record<string, string>): [string, string][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1))
}

/**
 * The scheduler's keys that belong to a request, to a device's use or to a replica that has left; all of them must be
 * gone when nothing downloads or waits any more (lease-rules.lua has the list).
 */
const LEASE_KEY = /^(use|r|restore|dirty|lapsed|susd|(on|q|qb|f|own|in|out|sus):.*)$/

/** Those of `keys` that start with "{prefix}:" and are such keys, sorted. */
export function leaseKeys(keys: readonly string[], prefix: string): readonly string[] {
  const head = `{${prefix}}:`
  return keys.filter((key) => key.startsWith(head) && LEASE_KEY.test(key.slice(head.length))).sort()
}
