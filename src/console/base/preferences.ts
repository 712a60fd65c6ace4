/** What somebody prefers in this browser: theme and zone. A link does not carry it. */
import { useEffect, useState } from 'preact/hooks'
import { browserZone, type Zone } from './instants.ts'

export type Theme = 'dark' | 'light'

export interface Preferences {
  readonly theme: Theme
  readonly zone: Zone
  readonly toggleTheme: () => void
  readonly toggleZone: () => void
}

export function usePreferences(): Preferences {
  const [theme, setTheme] = useState<Theme>(() => (kept('theme') as Theme | undefined) ?? systemTheme())
  const [isUtc, setUtc] = useState(() => preferredZone() === 'UTC')
  useEffect(() => {
    document.documentElement.dataset.theme = theme
  }, [theme])
  return {
    theme,
    zone: isUtc ? 'UTC' : browserZone(),
    toggleTheme: () => setTheme(keep('theme', theme === 'dark' ? 'light' : 'dark')),
    toggleZone: () => setUtc(keep('zone', isUtc ? 'local' : 'UTC') === 'UTC'),
  }
}

export function preferredZone(): Zone {
  return kept('zone') === 'local' ? browserZone() : 'UTC'
}

function systemTheme(): Theme {
  return matchMedia('(prefers-color-scheme: light)').matches ? 'light' : 'dark'
}

/** What a browser forbids to keep holds until the page is left. */
const unkept = new Map<string, string>()

function kept(name: string): string | undefined {
  try {
    return localStorage.getItem(`capfleet-${name}`) ?? unkept.get(name)
  } catch {
    return unkept.get(name)
  }
}

function keep<Value extends string>(name: string, value: Value): Value {
  try {
    localStorage.setItem(`capfleet-${name}`, value)
  } catch {
    unkept.set(name, value)
  }
  return value
}
