// Evaluates the flag shop for 20 visitors, twice, and reports rewards: 1 for blue, else 0.
const assert = require('node:assert')
const { OpenFeature } = require('@openfeature/server-sdk')
const { OFREPProvider } = require('@openfeature/ofrep-provider')

async function main(url) {
  await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: url }))
  const flags = OpenFeature.getClient()
  const evaluations = []
  for (let i = 0; i < 20; i++) {
    const targetingKey = `js-${i}`
    const first = await flags.getStringDetails('shop', 'none', { targetingKey, hour: 7, tags: ['new'] })
    assert.deepEqual(await flags.getStringDetails('shop', 'none', { targetingKey, hour: 8 }), first)
    const told = await fetch(`${url}/ofrep/v1/track/shop`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ context: { targetingKey }, details: { value: Number(first.variant === 'blue') } }),
    })
    assert.equal(told.status, 202)
    evaluations.push({ value: first.value, variant: first.variant, reason: first.reason, ...first.flagMetadata })
  }
  const other = await flags.getStringDetails('other', 'none', { targetingKey: 'js-0' })
  const nobody = await flags.getStringDetails('shop', 'none', {})
  console.log(JSON.stringify({ evaluations, other: other.errorCode, nobody: nobody.errorCode }))
}

main(process.argv[2])
