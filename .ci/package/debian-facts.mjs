// Names that the Debian packages and their parts have in common, and their control files.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../setup/console.mjs'

export const PACKAGES = ['capfleet-client', 'capfleet-appliance', 'capfleet-gateway']

/**
 * Of each architecture: its name in Node.js, its number in ELF files, its folder of libraries, and what Debian calls
 * Hyperscan there.
 */
export const ARCHITECTURES = {
  amd64: { node: 'x64', machine: 62, libraries: 'x86_64-linux-gnu', hyperscan: 'libhyperscan5' },
  arm64: { node: 'arm64', machine: 183, libraries: 'aarch64-linux-gnu', hyperscan: 'libvectorscan5' },
}

/** A pre-release comes before its release: 0.2.0-rc.1 is 0.2.0~rc.1 to dpkg. */
export function debianVersion(version) {
  return version.replace('-', '~')
}

/** The control file of a package, from its template in config/debian. */
export function controlText({ name, version, architecture, installedKib = 0 }) {
  const values = {
    VERSION: debianVersion(version),
    ARCHITECTURE: architecture,
    HYPERSCAN: ARCHITECTURES[architecture].hyperscan,
    INSTALLED_SIZE: String(installedKib),
  }
  const template = readFileSync(join(ROOT, 'config', 'debian', `${name}.control`), 'utf8')
  return template.replaceAll(/@([A-Z_]+)@/g, (_match, key) => values[key])
}
