// Golden designs, each behind a line that names it. Equivalent rewrites stand behind lines "same".
//== adder
module adder #(parameter W = 8) (input [W-1:0] a, b, input cin, output [W-1:0] sum, output cout);
  assign {cout, sum} = a + b + cin;
endmodule
//-- same
module adder (a, b, cin, sum, cout);
  input [7:0] a, b; input cin; output reg [7:0] sum; output reg cout;
  reg [8:0] c; integer i;
  always @* begin
    c[0] = cin;
    for (i = 0; i < 8; i = i + 1) begin
      sum[i] = a[i] ^ b[i] ^ c[i];
      c[i+1] = (a[i] & b[i]) | (c[i] & (a[i] | b[i]));
    end
    cout = c[8];
  end
endmodule
//== subtract_signed
module subtract_signed (input signed [7:0] a, b, output signed [7:0] d, output overflow);
  assign d = a - b;
  assign overflow = (a[7] != b[7]) && (d[7] != a[7]);
endmodule
//-- same
module subtract_signed (input [7:0] a, input [7:0] b, output [7:0] d, output overflow);
  wire [8:0] wide = {a[7], a} - {b[7], b};
  assign d = wide[7:0], overflow = wide[8] ^ wide[7];
endmodule
//== compare
module compare (input [15:0] a, b, output lt, eq, gt);
  assign lt = a < b, eq = a == b, gt = a > b;
endmodule
//-- same
module compare (input [15:0] a, b, output logic lt, eq, gt);
  always_comb begin {lt, eq, gt} = 3'b000; if (a == b) eq = 1; else if (a > b) gt = 1; else lt = 1; end
endmodule
//== alu
module alu (input [2:0] op, input [7:0] a, b, output reg [7:0] y, output zero);
  always @(*) case (op)
    3'd0: y = a + b;
    3'd1: y = a - b;
    3'd2: y = a & b;
    3'd3: y = a | b;
    3'd4: y = a ^ b;
    3'd5: y = a << b[2:0];
    3'd6: y = a >> b[2:0];
    default: y = {7'b0, a < b};
  endcase
  assign zero = y == 0;
endmodule
//-- same
module alu (op, a, b, y, zero);
  input [2:0] op; input [7:0] a; input [7:0] b; output [7:0] y; output zero;
  assign y = op == 0 ? a + b : op == 1 ? a + ~b + 8'd1 : op == 2 ? a & b : op == 3 ? ~(~a & ~b) : op == 4 ? a ^ b
    : op == 5 ? a << b[2:0] : op == 6 ? a >> b[2:0] : (a < b ? 8'd1 : 8'd0);
  assign zero = ~|y;
endmodule
//== mux
module mux (input [1:0] s, input [3:0] d0, d1, d2, d3, output reg [3:0] y);
  always @(s or d0 or d1 or d2 or d3) case (s) 2'b00: y = d0; 2'b01: y = d1; 2'b10: y = d2; 2'b11: y = d3; endcase
endmodule
//-- same
module mux (input [1:0] s, input [3:0] d0, d1, d2, d3, output [3:0] y);
  wire [15:0] all = {d3, d2, d1, d0};
  assign y = all[s*4 +: 4];
endmodule
//== decoder
module decoder (input en, input [2:0] a, output [7:0] y);
  assign y = en ? 8'd1 << a : 8'd0;
endmodule
//-- same
module decoder (input en, input [2:0] a, output [7:0] y);
  genvar i;
  generate for (i = 0; i < 8; i = i + 1) begin : bits assign y[i] = en && a == i; end endgenerate
endmodule
//== priority_encoder
module priority_encoder (input [7:0] r, output reg [2:0] n, output valid);
  assign valid = |r;
  always @(*) casez (r)
    8'b1???????: n = 7; 8'b01??????: n = 6; 8'b001?????: n = 5; 8'b0001????: n = 4;
    8'b00001???: n = 3; 8'b000001??: n = 2; 8'b0000001?: n = 1; 8'b00000001: n = 0;
    default: n = 3'bxxx;
  endcase
endmodule
//-- same
module priority_encoder (input [7:0] r, output reg [2:0] n, output valid);
  integer i;
  assign valid = r != 0;
  always @(*) begin n = 0; for (i = 0; i < 8; i = i + 1) if (r[i]) n = i; end
endmodule
//== popcount
module popcount (input [12:0] x, output [3:0] n);
  assign n = x[0] + x[1] + x[2] + x[3] + x[4] + x[5] + x[6] + x[7] + x[8] + x[9] + x[10] + x[11] + x[12];
endmodule
//-- same
module popcount (input [12:0] x, output reg [3:0] n);
  integer i;
  always @* begin n = 0; for (i = 0; i < 13; i = i + 1) n = n + {3'b0, x[i]}; end
endmodule
//== gray
module gray (input [4:0] b, output [4:0] g);
  assign g = b ^ (b >> 1);
endmodule
//-- same
module gray (input [4:0] b, output [4:0] g);
  assign g = {b[4], b[4]^b[3], b[3]^b[2], b[2]^b[1], b[1]^b[0]};
endmodule
//== seven_segment
module seven_segment (input [3:0] d, output reg [6:0] s);
  always @* case (d)
    0: s = 7'h3f; 1: s = 7'h06; 2: s = 7'h5b; 3: s = 7'h4f; 4: s = 7'h66; 5: s = 7'h6d; 6: s = 7'h7d; 7: s = 7'h07;
    8: s = 7'h7f; 9: s = 7'h6f; default: s = 0;
  endcase
endmodule
//== multiplier
module multiplier (input [7:0] a, b, output [15:0] p);
  assign p = a * b;
endmodule
//-- same
module multiplier (input [7:0] a, b, output [15:0] p);
  function [15:0] times(input [7:0] x, y); integer i; begin
    times = 0; for (i = 0; i < 8; i = i + 1) if (y[i]) times = times + ({8'b0, x} << i); end
  endfunction
  assign p = times(a, b);
endmodule
//== barrel
module barrel (input [31:0] x, input [4:0] n, input left, output [31:0] y);
  assign y = left ? (x << n) | (x >> (32 - n)) : (x >> n) | (x << (32 - n));
endmodule
//-- same
module barrel (input [31:0] x, input [4:0] n, input left, output [31:0] y);
  wire [63:0] two = {x, x} >> (left ? 6'd32 - n : {1'b0, n});
  assign y = two[31:0];
endmodule
//== constant
module constant (output zero, output [3:0] five);
  assign zero = 1'b0, five = 5;
endmodule
//-- same
module constant (output zero, output reg [3:0] five);
  initial five = 4'b0101;
  assign zero = five[1];
endmodule
//== tristate
module tristate (input en, input [3:0] d, output [3:0] y);
  assign y = en ? d : 4'bz;
endmodule
//-- same
module tristate (input en, input [3:0] d, output [3:0] y);
  bufif1 b0(y[0], d[0], en), b1(y[1], d[1], en), b2(y[2], d[2], en), b3(y[3], d[3], en);
endmodule
//== latch
module latch (input en, input [3:0] d, output reg [3:0] q);
  always @(en or d) if (en) q <= d;
endmodule
//-- same
module latch (input en, input [3:0] d, output [3:0] q);
  reg [3:0] kept;
  always @* if (en) kept = d;
  assign q = kept;
endmodule
//== dff
module dff (input clk, d, output reg q);
  always @(posedge clk) q <= d;
endmodule
//-- same
module dff (clk, d, q);
  input clk, d; output q; reg a;
  assign q = a;
  always @(posedge clk) a <= #1 d;
endmodule
//== counter
module counter #(parameter W = 4) (input clk, rst_n, en, output reg [W-1:0] n, output wrap);
  always @(posedge clk or negedge rst_n) if (!rst_n) n <= 0; else if (en) n <= n + 1;
  assign wrap = en & (&n);
endmodule
//-- same
module counter (input clk, input rst_n, input en, output [3:0] n, output wrap);
  reg [3:0] state; wire [3:0] next = en ? state + 4'd1 : state;
  assign n = state;
  assign wrap = en && n == 4'hf;
  always @(negedge rst_n or posedge clk) if (rst_n == 1'b0) state <= 4'd0; else state <= next;
endmodule
//== counter_sync
module counter_sync (input clk, reset, up, output reg [7:0] n);
  always @(posedge clk) if (reset) n <= 8'd100; else n <= up ? n + 8'd1 : n - 8'd1;
endmodule
//-- same
module counter_sync (input clk, reset, up, output reg [7:0] n);
  always @(posedge clk) begin n <= n + (up ? 8'd1 : 8'hff); if (reset) n <= 8'd100; end
endmodule
//== loadable
module loadable (input clock, clear, load, input [5:0] d, output reg [5:0] q, output done);
  always @(posedge clock) if (clear) q <= 0; else if (load) q <= d; else if (q != 0) q <= q - 1;
  assign done = q == 0;
endmodule
//-- same
module loadable (input clock, clear, load, input [5:0] d, output reg [5:0] q, output done);
  assign done = ~(q[0] | q[1] | q[2] | q[3] | q[4] | q[5]);
  always @(posedge clock) casez ({clear, load, done}) 3'b1??: q <= 6'd0; 3'b01?: q <= d; 3'b000: q <= q + 6'h3f; endcase
endmodule
//== shift
module shift (input clk, input arst, input s, input load, input [7:0] d, output reg [7:0] q);
  always @(posedge clk or posedge arst) if (arst) q <= 8'h00; else if (load) q <= d; else q <= {q[6:0], s};
endmodule
//-- same
module shift (input clk, input arst, input s, input load, input [7:0] d, output [7:0] q);
  reg [7:0] r; assign q = r; integer i;
  always @(posedge clk or posedge arst) begin
    if (arst) r <= 0;
    else begin r[0] <= load ? d[0] : s; for (i = 1; i < 8; i = i + 1) r[i] <= load ? d[i] : r[i-1]; end
  end
endmodule
//== delay_line
module delay_line (input clk, input [3:0] d, output [3:0] q);
  reg [3:0] a, b, c;
  always @(posedge clk) begin a <= d; b <= a; c <= b; end
  assign q = c;
endmodule
//-- same
module delay_line (input clk, input [3:0] d, output reg [3:0] q);
  reg [7:0] line;
  always @(posedge clk) {q, line} <= {line, d};
endmodule
//== lfsr
module lfsr (input clk, rst, output [7:0] q);
  reg [7:0] r;
  always @(posedge clk) if (rst) r <= 8'h1; else r <= {r[6:0], r[7] ^ r[5] ^ r[4] ^ r[3]};
  assign q = r;
endmodule
//-- same
module lfsr (input clk, rst, output reg [7:0] q);
  always @(posedge clk) q <= rst ? 8'h1 : {q[6:0], ^(q & 8'hb8)};
endmodule
//== detect
module detect (input clk, resetn, x, output z);
  localparam A = 0, B = 1, C = 2, D = 3;
  reg [1:0] s, n;
  always @(posedge clk) if (~resetn) s <= A; else s <= n;
  always @(*) case (s) A: n = x ? B : A; B: n = x ? B : C; C: n = x ? D : A; D: n = x ? B : C; endcase
  assign z = s == D && x;
endmodule
//-- same
module detect (input clk, resetn, x, output z);
  reg [2:0] seen;
  always @(posedge clk) if (!resetn) seen <= 3'b000; else seen <= {seen[1:0], x};
  assign z = seen == 3'b101 & x;
endmodule
//== traffic
module traffic (input clk, rst, car, output reg [2:0] main, side);
  reg [1:0] state; reg [2:0] timer;
  always @(posedge clk or posedge rst)
    if (rst) begin state <= 0; timer <= 0; end
    else begin
      timer <= timer + 1;
      case (state)
        0: if (car && timer >= 4) begin state <= 1; timer <= 0; end
        1: if (timer == 1) begin state <= 2; timer <= 0; end
        2: if (!car || timer == 5) begin state <= 3; timer <= 0; end
        3: if (timer == 1) begin state <= 0; timer <= 0; end
      endcase
    end
  always @(*) begin
    main = state == 0 ? 3'b001 : state == 1 ? 3'b010 : 3'b100;
    side = state == 2 ? 3'b001 : state == 3 ? 3'b010 : 3'b100;
  end
endmodule
//== pulse
module pulse (input clk, rst_n, a, output rise, fall);
  reg before;
  always @(posedge clk or negedge rst_n) if (!rst_n) before <= 1'b0; else before <= a;
  assign rise = a & ~before, fall = ~a & before;
endmodule
//-- same
module pulse (input clk, rst_n, a, output reg rise, fall);
  reg last;
  always_ff @(posedge clk, negedge rst_n) last <= rst_n ? a : 1'b0;
  always_comb begin rise = 0; fall = 0; if (a != last) begin if (a) rise = 1; else fall = 1; end end
endmodule
//== debounce
module debounce (input clk, rst, noisy, output reg clean);
  reg [2:0] n;
  always @(posedge clk) if (rst) begin n <= 0; clean <= 0; end
    else if (noisy == clean) n <= 0;
    else if (n == 3'd5) begin clean <= noisy; n <= 0; end
    else n <= n + 1;
endmodule
//== divider
module divider (input clk_in, reset_n, output reg clk_out);
  reg [1:0] n;
  always @(posedge clk_in or negedge reset_n) if (!reset_n) begin n <= 0; clk_out <= 0; end
    else if (n == 2) begin n <= 0; clk_out <= ~clk_out; end else n <= n + 1;
endmodule
//-- same
module divider (input clk_in, reset_n, output clk_out);
  reg [2:0] n;
  assign clk_out = n >= 3;
  always @(posedge clk_in or negedge reset_n) if (!reset_n) n <= 0; else n <= n == 5 ? 0 : n + 1;
endmodule
//== ram
module ram (input clk, we, input [3:0] addr, input [7:0] din, output reg [7:0] out);
  reg [7:0] mem [0:15];
  always @(posedge clk) begin if (we) mem[addr] <= din; out <= mem[addr]; end
endmodule
//-- same
module ram (input clk, we, input [3:0] addr, input [7:0] din, output reg [7:0] out);
  reg [7:0] mem [15:0];
  always @(posedge clk) out <= mem[addr];
  always @(posedge clk) if (we) mem[addr] <= din;
endmodule
//== register_file
module register_file (input clk, we, input [2:0] wa, ra, rb, input [15:0] wd, output [15:0] a, b);
  reg [15:0] r [7:0];
  always @(posedge clk) if (we && wa != 0) r[wa] <= wd;
  assign a = ra == 0 ? 16'd0 : r[ra], b = rb == 0 ? 16'd0 : r[rb];
endmodule
//== fifo
module fifo (input clk, rst_n, push, pop, input [7:0] d, output [7:0] q, output empty, full);
  reg [7:0] mem [0:3]; reg [1:0] w, r; reg [2:0] n;
  assign empty = n == 0, full = n == 4, q = mem[r];
  wire in = push && !full, out = pop && !empty;
  always @(posedge clk or negedge rst_n)
    if (!rst_n) begin w <= 0; r <= 0; n <= 0; end
    else begin
      if (in) begin mem[w] <= d; w <= w + 1; end
      if (out) r <= r + 1;
      n <= n + in - out;
    end
endmodule
//== edges
module edges (input clk, input [3:0] d, output [3:0] q);
  reg [3:0] up, down;
  always @(posedge clk) up <= d;
  always @(negedge clk) down <= d + 1;
  assign q = clk ? up : down;
endmodule
//== two_clocks
module two_clocks (input wclk, rclk, rst_n, a, output reg y);
  reg t, m;
  always @(posedge wclk or negedge rst_n) if (!rst_n) t <= 0; else t <= t ^ a;
  always @(posedge rclk or negedge rst_n) if (!rst_n) {y, m} <= 0; else {y, m} <= {m, t};
endmodule
//== gated
module gated (input clk, en, input [3:0] d, output reg [3:0] q);
  wire g = clk & en;
  always @(posedge g) q <= d;
endmodule
//== hierarchy
module hierarchy (input ck, nrst, input [7:0] d, output [7:0] q);
  stage #(.W(4)) low (.c(ck), .r(nrst), .d(d[3:0]), .q(q[3:0]));
  stage #(4) high (ck, nrst, d[7:4], q[7:4]);
endmodule
module stage #(parameter W = 1) (input c, r, input [W-1:0] d, output reg [W-1:0] q);
  always @(posedge c or negedge r) if (!r) q <= {W{1'b1}}; else q <= d;
endmodule
//-- same
module hierarchy (input ck, nrst, input [7:0] d, output reg [7:0] q);
  always @(posedge ck or negedge nrst) if (!nrst) q <= 8'hff; else q <= d;
endmodule
//== macros
`define WIDTH 6
`ifdef WIDE
`define TOP 31
`else
`define TOP (`WIDTH-1)
`endif
`timescale 1ns / 1ps
`default_nettype none
module macros (input wire clk, input wire [`TOP:0] d, output reg [`TOP:0] q);
  always @(posedge clk) q <= #1 ~d;
endmodule
//-- same
`define W 6
module macros (clk, d, q);
  input clk; input [`W-1:0] d; output [`W-1:0] q;
  reg [`W-1:0] r; always @(posedge clk) r <= d;
  assign q = r ^ {`W{1'b1}};
endmodule
//== old_names
module old_names (input bit, priority, output logic, unique);
  assign logic = bit & priority, unique = bit ^ priority;
endmodule
//-- same
module old_names (input \bit , input \priority , output \logic , output \unique );
  assign \logic = \bit && \priority ;
  assign \unique = \bit != \priority ;
endmodule
//== packed_types
typedef enum logic [1:0] {IDLE, RUN, STOP} state_t;
module packed_types (input logic clk, input logic rst, input logic go, input logic [1:0][3:0] d, output logic [3:0] y, output logic busy);
  state_t state;
  always_ff @(posedge clk) if (rst) state <= IDLE;
    else case (state) IDLE: if (go) state <= RUN; RUN: state <= STOP; default: state <= IDLE; endcase
  assign busy = state != IDLE;
  assign y = busy ? d[1] : d[0];
endmodule
