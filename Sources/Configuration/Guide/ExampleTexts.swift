/// What the example configuration has beside the schema's keys.
enum ExampleTexts {
    static let head = """
        # chatbridge.toml - every key with its default: one listener on loopback, and one room. Tables that open more are commented out,
        # with a # right in front of the key; behind "# " stand keys without a default, each with an example.
        #
        # Unknown keys are errors, with file:line:column and the nearest known name; `chatbridge check` shows them all at once, and
        # `chatbridge config explain KEY` the form of a key, and where it is set.
        # Any string may be "${NAME}", "${NAME:-default}" (environment) or "${file:/path}" (contents, one trailing newline
        # dropped); "$$" is a dollar sign. Any key can be set from the environment: CHATBRIDGE__LIMITS__MESSAGES_PER_SECOND=5,
        # CHATBRIDGE__ROOMS__LOBBY__URL=ws://..., CHATBRIDGE__LISTENERS__0__BIND=irc://...
        # Durations: "500ms" "30s" "5m" "12h" "7d"; sizes: "512" "64KiB" "1MiB"; "0" or "off" = none.

        """

    /// Further examples, by section; each loads when its marks are removed.
    static let further: [String: [String]] = [
        "listeners": [
            """
            #[[listeners]]                     # example: IRC over WebSocket, for gamja, Kiwi IRC and the like
            #bind = "ws://127.0.0.1:6680/irc"
            #origins = ["self"]

            """,
            """
            #[[listeners]]                     # example: a socket file; counts as this machine
            #bind = "irc+unix:///run/chatbridge/irc.sock"
            #mode = "0660"

            """,
        ],
        "dialects": [
            """
            #[dialects.mine]                   # then: dialect = "mine"; config/dialects has examples
            #file = "dialects/mine.json"

            """
        ],
        "backends": [
            """
            #[[rooms]]                         # example: the room "kitchen" of that backend; its own keys take precedence
            #name = "kitchen"
            #backend = "main"

            """,
            """
            #[[rooms]]                         # example: any other joined channel opens the backend's room of that name; a backend
                                               # that lists its rooms shows them in LIST
            #name = "*"
            #backend = "main"

            """,
        ],
        "rooms": [
            """
            #[[rooms]]                         # example: one backend with a room in its path, and a token
            #name = "support"
            #url = "ws://127.0.0.1:8080/rooms/{room}"
            #auth = { type = "bearer", token = "${SUPPORT_TOKEN:-none}" }
            #queue = { max_age = "1h" }

            """,
            """
            #[[rooms]]                         # example: a backend on a socket file, the token in the query
            #name = "ops"
            #url = "ws+unix:///run/chat/backend.sock:/rooms/{room}"
            #auth = { type = "query", param = "access_token", token = "${OPS_TOKEN:-none}" }

            """,
            """
            #[[rooms]]                         # example: user and password, through a proxy
            #name = "board"
            #url = "ws://chat.example.com/board"
            #auth = { type = "basic", user = "bridge", password = "${BOARD_PASSWORD:-none}" }
            #proxy = "http://proxy.example.com:3128"

            """,
            """
            #[[rooms]]                         # example: the token in a header of the backend's own
            #name = "desk"
            #url = "ws://chat.example.com/desk"
            #auth = { type = "header", name = "X-Api-Key", format = "key={token}", token = "${DESK_KEY:-none}" }

            """,
            """
            #[[rooms]]                         # example: log-in over HTTP; tokens are stored in state_dir and renewed before they
                                               # expire. Dialects with a log-in of their own need only user and password
            #name = "shop"
            #url = "wss://chat.example.com/shop"
            #[rooms.auth]
            #type = "login"
            #login_url = "https://chat.example.com/api/login"
            #login_body = { username = "bridge", password = "${SHOP_PASSWORD:-none}" }
            #refresh_url = "https://chat.example.com/api/refresh"
            #refresh_body = { refresh_token = "{refresh_token}" }
            #send_as = { in = "header", name = "Authorization", format = "Bearer {token}" }

            """,
        ],
    ]
}
