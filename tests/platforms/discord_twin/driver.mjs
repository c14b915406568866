// Runs `discord-digital-twin` for one test: JSON lines on standard input are what people do, JSON lines on
// standard output what the twin answers. Usage: node driver.mjs FOLDER, where FOLDER/node_modules has the package.
//
// Four answers are put in front of the twin: the gateway's address, the owner of the application, no commands that
// are registered, and a body for a first response that was asked for one. It listens on the loopback address only.

import http from 'node:http'
import path from 'node:path'
import readline from 'node:readline'
import { pathToFileURL } from 'node:url'

const listen = http.Server.prototype.listen
http.Server.prototype.listen = function (port, ready) {
  return listen.call(this, port, '127.0.0.1', ready)
}

const journal = []
const emit = http.Server.prototype.emit
http.Server.prototype.emit = function (event, request, response) {
  if (event === 'request') {
    const { pathname, searchParams } = new URL(request.url, 'http://localhost')
    journal.push(`${request.method} ${pathname}`)
    if (pathname.endsWith('/gateway')) return answer(response, { url: twin.gatewayUrl })
    if (pathname.endsWith('/oauth2/applications/@me')) return answer(response, application())
    if (request.method === 'GET' && /\/applications\/[0-9]+\/commands$/.test(pathname)) return answer(response, [])
    const callback = pathname.match(/\/interactions\/([0-9]+)\/[^/]+\/callback$/)
    if (callback && ['1', 'true'].includes(searchParams.get('with_response'))) tell(response, callback[1])
  }
  return emit.apply(this, arguments)
}

function answer(response, value) {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
  return true
}

function application() {
  const owner = { id: '1', username: 'ada', discriminator: '0', avatar: null }
  const known = { id: twin.botUserId, name: 'TestBot', description: '', icon: null, verify_key: '0', owner }
  return { ...known, bot_public: false, bot_require_code_grant: false }
}

// The twin answers 204 to every first response; whoever asked for one gets the interaction with its type.
function tell(response, id) {
  const { writeHead, end } = response
  let empty = false
  response.writeHead = function (status, ...rest) {
    empty = status === 204
    return empty ? writeHead.call(this, 200, { 'content-type': 'application/json' }) : writeHead.call(this, status, ...rest)
  }
  response.end = function (...rest) {
    return empty ? end.call(this, JSON.stringify({ interaction: { id, type: 2 } })) : end.apply(this, rest)
  }
}

const main = path.resolve(process.argv[2], 'node_modules/discord-digital-twin/dist/index.js')
const { DigitalDiscord } = await import(pathToFileURL(main).href)
const twin = new DigitalDiscord({
  botToken: process.env.TWIN_TOKEN,
  channels: [{ name: 'general', type: 0 }],
  users: [{ username: 'Ada' }],
})
await twin.start()
const user = await twin.getFirstNonBotUserId()
const { id: channel } = await twin.prisma.channel.findFirstOrThrow()

const place = (id) => twin.channel(id ?? channel)
const verbs = {
  say: ({ text }) => place().user(user).sendMessage({ content: text }),
  edit: ({ message, text }) => place().user(user).editMessage({ messageId: message, content: text }),
  press: ({ message, data }) => place().user(user).clickButton({ messageId: message, customId: data }),
  choose: ({ message, data, values }) =>
    place().user(user).selectMenu({ messageId: message, customId: data, values }),
  slash: ({ name, options }) => place().user(user).runSlashCommand({ name, options }),
  // The twin's own submitModal forgets the message whose button has opened the modal.
  submit: ({ message, data, components }) =>
    twin.simulateInteraction({
      type: 5,
      channelId: channel,
      userId: user,
      messageId: message,
      data: { custom_id: data, components },
    }),
  messages: () => place().getMessages(),
  taken: ({ id }) => place().waitForInteractionAck({ interactionId: id }).then(() => place().getInteractionResponse(id)),
  calls: () => journal,
}

const print = (value) => process.stdout.write(JSON.stringify(value) + '\n')
print({ port: twin.port, guild: twin.guildId, channel, user, bot: twin.botUserId })
for await (const line of readline.createInterface({ input: process.stdin })) {
  const { verb, ...given } = JSON.parse(line)
  try {
    print({ value: (await verbs[verb](given)) ?? null })
  } catch (error) {
    print({ error: String(error) })
  }
}
await twin.stop()
process.exit(0)
