/** Names of the images, and where their archives are. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { REPOSITORY_ROOT } from '../repository-files.ts'

/** The targets of config/Dockerfile that are images. */
export const CAPFLEET_IMAGES = ['gateway', 'appliance', 'client'] as const

/** Contains NAME.tar, and NAME.cdx.json for our own images. */
export const IMAGE_FOLDER = join(REPOSITORY_ROOT, '.tools', 'images')

const { version } = JSON.parse(read('package.json')) as { readonly version: string }
const { redis } = parse(read('helm/values.yaml')) as {
  readonly redis: { readonly image: { readonly repository: string; readonly tag: string } }
}

export const NODE_BASE = `docker.io/library/${/^ARG NODE_IMAGE=(\S+)$/m.exec(read('config/Dockerfile'))?.[1]}`
export const REDIS_IMAGE = `docker.io/${redis.image.repository}:${redis.image.tag}`

/** The tag here, and on the real node with the value imageRegistry=localhost. */
export function imageTag(name: string): string {
  if (name === 'pause') return 'localhost/pause:1'
  return name === 'redis'
    ? REDIS_IMAGE.replace('docker.io', 'localhost')
    : `localhost/capfleet/${name}:${version}`
}

function read(path: string): string {
  return readFileSync(join(REPOSITORY_ROOT, path), 'utf8')
}
